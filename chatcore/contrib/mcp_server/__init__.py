"""Chatcore as a server of the Model Context Protocol, at `/mcp`: its memory for other agents.

Each tool is a request to the REST API as the user whose token came with the call.
"""
