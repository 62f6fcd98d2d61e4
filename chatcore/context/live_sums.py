"""Sum the sizes of the live messages in one query, without loading any text."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chatcore.sessions.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.statements import adapt_uuid, fetch_rows

# The messages that query_live_messages() in live_messages.py selects, in parts.
_SENDABLE = """
    message.session_id = %s AND message.branch IS NULL AND message.role <> 'system'
    AND message.status NOT IN ('streaming', 'failed')
"""
_STORED_SIZES = f"""
    SELECT message.token_estimate AS tokens
    FROM chatcore_message message
    WHERE {_SENDABLE}
"""  # noqa: S608
# A message in another form has the size of its replacement, and a hidden one has none.
_SHOWN_SIZES = f"""
    SELECT CASE
        WHEN edit.id IS NULL THEN message.token_estimate
        WHEN edit.kind = 'hidden' THEN 0
        WHEN LENGTH(edit.replacement) < {CHARS_PER_TOKEN_ESTIMATE} THEN 1
        ELSE LENGTH(edit.replacement) / {CHARS_PER_TOKEN_ESTIMATE}
    END AS tokens
    FROM chatcore_message message
    LEFT JOIN chatcore_contextedit edit
        ON edit.message_id = message.id AND edit.until_version IS NULL
    WHERE {_SENDABLE}
"""  # noqa: S608
# A message in another form has no files.
_FILE_SIZES = f"""
    SELECT
        CASE WHEN file.media_type LIKE 'image/%%' THEN 0 ELSE file.token_estimate END AS tokens,
        CASE WHEN file.media_type LIKE 'image/%%' THEN 1 ELSE 0 END AS image
    FROM chatcore_message message
    JOIN chatcore_attachment file ON file.message_id = message.id AND file.kind = 'file'
    WHERE {_SENDABLE} AND NOT EXISTS (
        SELECT 1 FROM chatcore_contextedit edit
        WHERE edit.message_id = message.id AND edit.until_version IS NULL
    )
"""  # noqa: S608

# A condition on `message`, and its parameters.
_Part = tuple[str, list[int]]


@dataclass(frozen=True, kw_only=True)
class LiveContext:
    """What decides which messages of a session are live."""

    session_id: UUID
    version: int
    boundary_seq: int | None
    kept_seqs: Collection[int] = ()

    @property
    def start_seq(self) -> int:
        """Return the number before the first message that is live by its number."""
        return (self.boundary_seq or 1) - 1


@dataclass(frozen=True, kw_only=True)
class LiveSum:
    """A number of live messages, and their estimated tokens together; files are not included."""

    messages: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class FileSum:
    """The estimated tokens of all files of live messages but images, and the number of these."""

    tokens: int
    images: int


def sum_live_messages(
    context: LiveContext, *, after_seq: int = 0, before_seq: int | None = None
) -> LiveSum:
    """Return the sum of the live messages between two numbers, both excluded."""
    parts = [_select_between(max(after_seq, context.start_seq), before_seq)]
    parts += _select_early(context, after_seq, before_seq)
    sizes = _SHOWN_SIZES if context.version else _STORED_SIZES
    counts = _aggregate("COUNT(*), SUM(tokens)", sizes, context.session_id, parts)
    return LiveSum(messages=counts[0], tokens=counts[1])


def sum_live_files(context: LiveContext) -> FileSum:
    """Return the sum of the files of all live messages."""
    parts = [_select_between(context.start_seq, None), *_select_early(context, 0, None)]
    counts = _aggregate("SUM(tokens), SUM(image)", _FILE_SIZES, context.session_id, parts)
    return FileSum(tokens=counts[0], images=counts[1])


def _select_between(after_seq: int, before_seq: int | None) -> _Part:
    if before_seq is None:
        return "message.seq > %s", [after_seq]
    return "message.seq > %s AND message.seq < %s", [after_seq, before_seq]


def _select_early(context: LiveContext, after_seq: int, before_seq: int | None) -> list[_Part]:
    """Return the conditions of the messages that are sent although they precede the boundary."""
    end_seq = min(context.start_seq + 1, before_seq or context.start_seq + 1)
    if after_seq + 1 >= end_seq:
        return []
    condition, limits = _select_between(after_seq, end_seq)
    parts: list[_Part] = [(f"{condition} AND message.pinned", limits)]
    # Not as parameters, of which a database takes a limited number.
    kept_seqs = ", ".join(str(int(seq)) for seq in context.kept_seqs if after_seq < seq < end_seq)
    if kept_seqs:
        parts.append((f"message.seq IN ({kept_seqs}) AND NOT message.pinned", []))
    return parts


def _aggregate(aggregates: str, select: str, session_id: UUID, parts: Sequence[_Part]) -> list[int]:
    """Return aggregates over the rows that fulfill one of the parts. No row may fulfill two.

    A single condition with OR would make databases read everything.
    """
    rows = " UNION ALL ".join(f"{select} AND {condition}" for condition, _ in parts)
    session_key = adapt_uuid(session_id)
    parameters: list[Any] = [value for _, limits in parts for value in (session_key, *limits)]
    [values] = fetch_rows(f"SELECT {aggregates} FROM ({rows}) live", parameters)  # noqa: S608
    return [int(value or 0) for value in values]
