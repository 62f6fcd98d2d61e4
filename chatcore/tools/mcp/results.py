"""Render the result of an MCP tool as text for the model."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp import types


def render_result(result: "types.CallToolResult") -> str:
    """Return the texts of the result in order; what is no text is named.

    A result with structured content alone is JSON.
    """
    texts = [_render_block(block) for block in result.content]
    if not texts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n\n".join(texts)


def _render_block(block: "types.ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "resource_link":
            return f"[{block.name}]({block.uri})"
        case "resource":
            text: str | None = getattr(block.resource, "text", None)
            return text if text is not None else f"[a file that is no text: {block.resource.uri}]"
    return f"[content of the type {block.mime_type}, which is not shown]"
