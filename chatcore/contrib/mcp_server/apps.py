"""The app of the MCP server."""

from chatcore.extension import ExtensionConfig


class McpServer(ExtensionConfig):
    default = True
    name = "chatcore.contrib.mcp_server"
    label = "mcp_server"
    verbose_name = "MCP server"
