"""Tools of other programs, by the Model Context Protocol: which there are, and their calls.

Beside the face that serves this protocol, it is the only room that imports the SDK.
"""
