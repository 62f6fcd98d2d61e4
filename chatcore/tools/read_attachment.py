"""The tool `read_attachment`: read a file of a message that is not sent, or only in part."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.base.truncation import TOOL_RESULT_MAX_CHARS
from chatcore.context.compactor import get_compactor
from chatcore.context.past_files import name_file, query_files
from chatcore.models import Attachment, Session
from chatcore.tools.base import BuiltInTool, ToolError
from chatcore.tools.text_parts import PLACE_PARAMETERS, list_passages, read_piece

HEADING_CHARS = 500  # room for the line above a part, and for the policy's mark of a cut
MAX_CHARS = TOOL_RESULT_MAX_CHARS - HEADING_CHARS
MAX_LISTED_CHARS = 20_000
WINDOW_SHARE = 2  # one part takes at most half of the context window


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Return a part of a file, after a line that says where in the file it is.

    With `search` these are the passages around each place of a text; without a name, all names.
    """
    session = Session.objects.select_related("model").get(pk=session_id)
    if not arguments.get("name"):
        return _list_names(session_id)
    file = _find_file(session_id, arguments["name"], arguments.get("message"))
    source, offset, text = f'"{name_file(file.name)}"', arguments["offset"], file.text
    if not text:
        raise ToolError(f"The file {source} holds no text that can be read.")
    if offset >= len(text):
        raise ToolError(
            f"The file {source} has {len(text):,} characters; offset {offset:,} is behind its end."
        )
    render = partial(read_piece, text, source, offset=offset)
    if arguments.get("search"):
        render = partial(list_passages, text, arguments["search"], source, offset=offset)
    return _fit_part(session, render, arguments.get("limit") or _choose_limit(session))


def _fit_part(session: Session, render: Callable[..., str], limit: int) -> str:
    """Return the part; a shorter one where the policy would cut it, so that its line is true."""
    part = render(limit=limit)
    policy = get_compactor().choose_policy(*session.policy_names)
    stored_part = policy.truncate_output(part)
    if stored_part.original_chars is None:
        return part
    return render(limit=max(1, len(stored_part.content) - HEADING_CHARS))


def _choose_limit(session: Session) -> int:
    window = session.model.request_limit if session.model else None
    if window is None:
        return MAX_CHARS
    return min(MAX_CHARS, window * CHARS_PER_TOKEN_ESTIMATE // WINDOW_SHARE)


def _find_file(session_id: UUID, name: str, seq: int | None) -> Attachment:
    """Return the newest file with this name, or that of the message with this number."""
    files = query_files(session_id)
    if seq is not None:
        files = files.filter(message__seq=seq)
    rows = list(files.values_list("pk", "name"))
    for normalize in (str, name_file, _simplify):
        for pk, file_name in rows:
            if normalize(name) in (normalize(file_name), normalize(name_file(file_name))):
                return Attachment.objects.only("name", "text").get(pk=pk)
    place = "" if seq is None else f" with message {seq}"
    raise ToolError(f"There is no file {name!r}{place}. {_list_names(session_id)}")


def _simplify(name: str) -> str:
    return name.strip("\"' ").casefold()


def _list_names(session_id: UUID) -> str:
    """Return the names of all files, the newest first, as far as there is room for them."""
    rows = query_files(session_id).values_list("name", "message__seq")
    lines = [f'"{name_file(name)}" (message {seq})' for name, seq in rows]
    text = ", ".join(lines) or "none"
    return f"The files of this conversation: {text}"[:MAX_LISTED_CHARS]


TOOL = BuiltInTool(
    name="read_attachment",
    description=(
        "Reads a file that was attached to a message and is no longer shown, or not all of it, as"
        " text. The summary names files that are no longer shown. With `search` it returns only the"
        " passages with a text; without a name, the names of all files."
    ),
    parameters={
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": "The name of the file, as the summary or its message has it.",
                "maxLength": 255,
            },
            "message": {
                "type": "integer",
                "description": "The number of its message, where several files have the name.",
                "minimum": 1,
                "maximum": 2**31 - 1,
            },
            **PLACE_PARAMETERS,
            "limit": {
                "type": "integer",
                "description": "How many characters; without it as many as fit.",
                "minimum": 1,
                "maximum": MAX_CHARS,
            },
        },
        "additionalProperties": False,
    },
    run=run,
)
