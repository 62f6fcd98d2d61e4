"""The tool `search_history`: find earlier messages, also those that a summary has replaced."""

from typing import Any
from uuid import UUID

from chatcore.search.query import SEARCH_TOOL_NAME, search_messages
from chatcore.tools.base import BuiltInTool


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Return the best messages of the session that hold every word, one on each line."""
    hits = search_messages(session_id, arguments["query"], arguments["limit"])
    if not hits:
        return "No earlier message holds all these words. Try fewer or other words."
    return "\n".join(
        f"[message {hit.seq}, {hit.role}, {hit.created_at:%Y-%m-%d %H:%M} UTC] {hit.snippet}"
        for hit in hits
    )


TOOL = BuiltInTool(
    name=SEARCH_TOOL_NAME,
    description=(
        "Searches all earlier messages of this conversation, summarized ones too, "
        "for those that hold all the given words."
    ),
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
