"""The tool `read_tool_output`: read more of an output that was too long for its message."""

from typing import Any
from uuid import UUID

from django.db.models.functions import Length, Substr

from chatcore.models import Attachment
from chatcore.tools.base import BuiltInTool, ToolError

MAX_CHARS = 20_000


def has_stored_outputs(session_id: UUID) -> bool:
    """Return True if the session has a stored output. Only then is the model offered this tool."""
    return Attachment.objects.filter(session=session_id, kind=Attachment.Kind.OUTPUT).exists()


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Return a part of a stored output, after a line that says where in the output it is."""
    seq, offset, limit = arguments["message"], arguments["offset"], arguments["limit"]
    outputs = Attachment.objects.filter(
        session=session_id, kind=Attachment.Kind.OUTPUT, message__seq=seq
    ).order_by()
    row = (
        outputs.annotate(chars=Length("text"), piece=Substr("text", offset + 1, limit))
        .values_list("chars", "piece")
        .first()
    )
    if row is None:
        raise ToolError(
            f"No output of message {seq} is kept."
            " The numbers stand at the end of the outputs that were shortened."
        )
    total, piece = row
    if offset >= total:
        raise ToolError(
            f"The output of message {seq} has {total:,} characters;"
            f" offset {offset:,} is behind its end."
        )
    end = offset + len(piece)
    continuation = f"the next begin at offset {end}" if end < total else "there are no more"
    position = f"Characters {offset:,} to {end:,} of the {total:,} of message {seq}"
    return f"[{position}; {continuation}.]\n{piece}"


TOOL = BuiltInTool(
    name="read_tool_output",
    description=(
        "Reads more of a tool's output that was shortened; the note at its end names the message."
    ),
    parameters={
        "type": "object",
        "properties": {
            "message": {
                "type": "integer",
                "description": "The number in the note.",
                "minimum": 1,
                "maximum": 2**31 - 1,
            },
            "offset": {
                "type": "integer",
                "description": "First character.",
                "default": 0,
                "minimum": 0,
                "maximum": 2**31 - 1,
            },
            "limit": {
                "type": "integer",
                "description": "How many characters.",
                "default": 8_000,
                "minimum": 1,
                "maximum": MAX_CHARS,
            },
        },
        "required": ["message"],
        "additionalProperties": False,
    },
    run=run,
)
