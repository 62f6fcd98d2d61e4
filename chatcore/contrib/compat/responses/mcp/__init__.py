"""MCP servers in requests and responses: their tools, calls, and questions to their person."""
