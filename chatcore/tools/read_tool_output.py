"""The tool `read_tool_output`: read more of an output that was too long for its message."""

from typing import Any
from uuid import UUID

from chatcore.base.databases.outages import StorageAway
from chatcore.files import output_store
from chatcore.files.output_store import OutputLost
from chatcore.models import Attachment
from chatcore.tools.base import BuiltInTool, ToolError
from chatcore.tools.text_parts import PLACE_PARAMETERS, list_passages, read_piece

MAX_CHARS = 20_000


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Return a part of a stored output, after a line that says where in the output it is.

    With `search` these are the passages around each place of a text, each after its offset.
    """
    seq, offset, limit = arguments["message"], arguments["offset"], arguments["limit"]
    outputs = Attachment.objects.filter(
        session=session_id, kind=Attachment.Kind.OUTPUT, message__seq=seq
    )
    output = outputs.order_by().first()
    if output is None:
        raise ToolError(
            f"No output of message {seq} is kept."
            " The numbers stand at the end of the outputs that were shortened."
        )
    try:
        text = output_store.read_text(output)
    except OutputLost:
        raise ToolError(f"The output of message {seq} is no longer kept.") from None
    except StorageAway:
        raise ToolError("The storage of outputs cannot be reached at the moment.") from None
    if offset >= len(text):
        raise ToolError(
            f"The output of message {seq} has {len(text):,} characters;"
            f" offset {offset:,} is behind its end."
        )
    if arguments.get("search"):
        return list_passages(
            text, arguments["search"], f"message {seq}", offset=offset, limit=limit
        )
    return read_piece(text, f"message {seq}", offset=offset, limit=limit)


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
            **PLACE_PARAMETERS,
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
