"""The tool that looks up what was said earlier in this conversation, also what its summary left out."""

from typing import Any
from uuid import UUID

from chatcore.search import query as search_query
from chatcore.tools.base import BuiltInTool


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """The newest messages of the session that hold every word, one a line."""
    hits = search_query.search_messages(session_id, arguments["query"], arguments["limit"])
    if not hits:
        return "No earlier message holds all these words. Try fewer or other words."
    return "\n".join(
        f"[message {hit.seq}, {hit.role}, {hit.created_at:%Y-%m-%d %H:%M} UTC] {hit.snippet}"
        for hit in hits
    )


TOOL = BuiltInTool(
    name=search_query.SEARCH_TOOL_NAME,
    description="Searches all earlier messages of this conversation, summarized ones too, for those that hold all the given words.",
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Words that must all occur.",
                "minLength": 1,
                "maxLength": 200,
            },
            "limit": {
                "type": "integer",
                "description": "How many messages at most.",
                "default": 8,
                "minimum": 1,
                "maximum": 20,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    run=run,
)
