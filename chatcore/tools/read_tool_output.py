"""The tool `read_tool_output`: read more of an output that was too long for its message."""

import re
from typing import Any
from uuid import UUID

from chatcore.base.databases.outages import StorageAway
from chatcore.files import output_store
from chatcore.files.output_store import OutputLost
from chatcore.models import Attachment
from chatcore.tools.base import BuiltInTool, ToolError

MAX_CHARS = 20_000
PASSAGE_CHARS = 160  # on each side of a text that was searched for


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
        return _list_passages(text, arguments["search"], seq, offset=offset, limit=limit)
    return _read_piece(text, seq, offset=offset, limit=limit)


def _read_piece(text: str, seq: int, *, offset: int, limit: int) -> str:
    piece = text[offset : offset + limit]
    end, total = offset + len(piece), len(text)
    continuation = f"the next begin at offset {end}" if end < total else "there are no more"
    position = f"Characters {offset:,} to {end:,} of the {total:,} of message {seq}"
    return f"[{position}; {continuation}.]\n{piece}"


def _list_passages(text: str, wanted_text: str, seq: int, *, offset: int, limit: int) -> str:
    """Return passages of at most `limit` characters together, from an offset on; case is ignored.

    Places that are close together are in one passage.
    """
    pattern = re.compile(re.escape(wanted_text), re.IGNORECASE)
    passages: list[str] = []
    end = offset
    remaining_chars = limit
    has_more = False
    for match in pattern.finditer(text, offset):
        if match.end() <= end:
            continue
        has_more = bool(passages) and remaining_chars <= 0
        if has_more:
            break
        start = max(end, match.start() - PASSAGE_CHARS)
        end = min(len(text), match.end() + PASSAGE_CHARS)
        passages.append(f"[offset {start}]\n{text[start:end]}")
        remaining_chars -= end - start
    if not passages:
        return (
            f"[{wanted_text!r} is not in the {len(text):,} characters of message {seq}"
            f" from offset {offset:,} on.]"
        )
    continuation = f"more from offset {end} on" if has_more else "there are no more"
    heading = f"Passages with {wanted_text!r} in the {len(text):,} characters of message {seq}"
    return "\n\n".join([f"[{heading}; {continuation}.]", *passages])


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
            "search": {
                "type": "string",
                "description": "Only the passages with this text, from the offset on.",
                "minLength": 1,
                "maxLength": 200,
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
