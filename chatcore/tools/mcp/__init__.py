"""Tools of other programs, by the Model Context Protocol: which there are, and their calls.

Beside `faces/mcp`, which serves this protocol, it is the only package that imports the SDK.
"""
