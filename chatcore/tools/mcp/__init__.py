"""Tools of other programs, by the Model Context Protocol: which there are, and their calls.

Beside `contrib/mcp_server`, which serves this protocol, it alone imports the SDK.
"""
