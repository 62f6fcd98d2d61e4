"""Sum the sizes of the live messages without reading each of them again after every answer.

A session's row holds a running sum: what its live messages from the boundary up to the message
`summed_seq` have together. A reader adds the few messages after it, and those that are sent
although they stand before the boundary.

No message pays for this when it is stored. Whatever changes an earlier message, or the form in
which it is shown, drops the sum in its own transaction, and the next `extend_running_sum` builds it
again (docs/decisions/0007-running-sums.md).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import BigIntegerField, Case, F, Value, When

from chatcore.models import Message, Session
from chatcore.sessions.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.statements import adapt_uuid, fetch_rows

# So many of the newest messages stay out of the sum. Most acts concern these (another answer, an
# edited question), and then the sum survives.
NEWEST_MESSAGES = 64
# The sum is extended when twice as many are not in it, so one check in 64 messages writes.
MAX_UNSUMMED_MESSAGES = 2 * NEWEST_MESSAGES
BATCH_SIZE = 20_000  # messages that one transaction sums: about 20 ms under the session's lock

# The columns of a session without a sum.
NO_SUM = {
    "summed_seq": 0,
    "summed_messages": 0,
    "summed_tokens": 0,
    "summed_file_tokens": 0,
    "summed_images": 0,
}

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
class LiveSum:
    """A number of live messages, and their estimated tokens together; files are not included."""

    messages: int = 0
    tokens: int = 0

    def __add__(self, other: "LiveSum") -> "LiveSum":
        return LiveSum(messages=self.messages + other.messages, tokens=self.tokens + other.tokens)


@dataclass(frozen=True, kw_only=True)
class FileSum:
    """The estimated tokens of all files of live messages but images, and the number of these."""

    tokens: int = 0
    images: int = 0

    def __add__(self, other: "FileSum") -> "FileSum":
        return FileSum(tokens=self.tokens + other.tokens, images=self.images + other.images)


@dataclass(frozen=True, kw_only=True)
class SummedContext:
    """What decides which messages are live, and the running sums up to the message `summed_seq`."""

    session_id: UUID
    version: int
    boundary_seq: int | None
    kept_seqs: Collection[int] = ()
    summed_seq: int
    message_sum: LiveSum
    file_sum: FileSum

    @property
    def start_seq(self) -> int:
        """Return the number before the first message that is live by its number."""
        return (self.boundary_seq or 1) - 1

    @property
    def last_summed_seq(self) -> int:
        """Return the number up to which nothing is to be added to the sums."""
        return max(self.summed_seq, self.start_seq)


def sum_live_messages(
    context: SummedContext, *, after_seq: int = 0, before_seq: int | None = None
) -> LiveSum:
    """Return the sum of the live messages between two numbers, both excluded, in one query."""
    is_from_start = after_seq <= context.start_seq
    is_past_sum = before_seq is None or before_seq > context.summed_seq
    if is_from_start and is_past_sum:
        known_sum, first_seq = context.message_sum, context.last_summed_seq
    else:
        known_sum, first_seq = LiveSum(), max(after_seq, context.start_seq)
    parts = [_select_between(first_seq, before_seq)]
    parts += _select_early(context, after_seq, before_seq)
    return known_sum + _sum_messages(context, parts)


def sum_live_files(context: SummedContext) -> FileSum:
    """Return the sum of the files of all live messages, in one query."""
    parts = [_select_between(context.last_summed_seq, None)]
    parts += _select_early(context, 0, None)
    return context.file_sum + _sum_files(context, parts)


def is_extension_due(context: SummedContext, last_seq: int) -> bool:
    """Return True if many messages up to the session's last one are not in the running sums."""
    return last_seq - context.last_summed_seq > MAX_UNSUMMED_MESSAGES


def extend_running_sums(session_id: UUID) -> None:
    """Add to the session's sums all messages but the newest; do nothing if few are missing.

    A long history takes several short transactions, each under the lock of the session's row.
    """
    while _extend_by_batch(session_id):
        pass


def build_drop(oldest_seq: int) -> dict[str, Case]:
    """Return the columns of a session that drop its sums if they include messages from here on.

    Write them in the transaction that changes the messages, while the session's row is locked.
    """
    is_included = When(summed_seq__gte=oldest_seq, then=Value(0))
    return {
        name: Case(is_included, default=F(name), output_field=BigIntegerField()) for name in NO_SUM
    }


def build_summed_context(session: Session) -> SummedContext:
    """Return a session's context with its sums, without the messages kept before the boundary."""
    return SummedContext(
        session_id=session.pk,
        version=session.context_version,
        boundary_seq=session.compact_boundary_seq,
        summed_seq=session.summed_seq,
        message_sum=LiveSum(messages=session.summed_messages, tokens=session.summed_tokens),
        file_sum=FileSum(tokens=session.summed_file_tokens, images=session.summed_images),
    )


def _extend_by_batch(session_id: UUID) -> bool:
    """Add at most BATCH_SIZE messages; return True if more may follow."""
    with transaction.atomic():
        # The lock, because whoever changes messages or the context drops the sums under it. Without
        # it, a sum that was read before such a change could be stored after it.
        try:
            session = Session.objects.lock(session_id)
        except Session.DoesNotExist:
            return False
        context = build_summed_context(session)
        if not is_extension_due(context, session.last_seq):
            return False
        last_seq = _find_last_seq(session, context.last_summed_seq)
        if last_seq <= context.last_summed_seq:
            return False
        parts = [_select_between(context.last_summed_seq, last_seq + 1)]
        message_sum = context.message_sum + _sum_messages(context, parts)
        file_sum = context.file_sum
        if session.attachments.exists():
            file_sum += _sum_files(context, parts)
        Session.objects.filter(pk=session_id).update(
            summed_seq=last_seq,
            summed_messages=message_sum.messages,
            summed_tokens=message_sum.tokens,
            summed_file_tokens=file_sum.tokens,
            summed_images=file_sum.images,
        )
        return True


def _find_last_seq(session: Session, first_seq: int) -> int:
    """Return the number up to which the next batch after `first_seq` is summed."""
    later_messages = session.messages.filter(seq__gt=first_seq).order_by("seq")
    batch_end = later_messages.values_list("seq", flat=True)[BATCH_SIZE - 1 :].first()
    last_seq = session.last_seq - NEWEST_MESSAGES
    if batch_end is not None:
        last_seq = min(last_seq, batch_end)
    # An answer gets its size when it ends, so the sums stay before it until then.
    streaming_messages = later_messages.filter(status=Message.Status.STREAMING, seq__lte=last_seq)
    streaming_seq = streaming_messages.values_list("seq", flat=True).first()
    return last_seq if streaming_seq is None else streaming_seq - 1


def _select_between(after_seq: int, before_seq: int | None) -> _Part:
    if before_seq is None:
        return "message.seq > %s", [after_seq]
    return "message.seq > %s AND message.seq < %s", [after_seq, before_seq]


def _select_early(context: SummedContext, after_seq: int, before_seq: int | None) -> list[_Part]:
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


def _sum_messages(context: SummedContext, parts: Sequence[_Part]) -> LiveSum:
    sizes = _SHOWN_SIZES if context.version else _STORED_SIZES
    counts = _aggregate("COUNT(*), SUM(tokens)", sizes, context.session_id, parts)
    return LiveSum(messages=counts[0], tokens=counts[1])


def _sum_files(context: SummedContext, parts: Sequence[_Part]) -> FileSum:
    counts = _aggregate("SUM(tokens), SUM(image)", _FILE_SIZES, context.session_id, parts)
    return FileSum(tokens=counts[0], images=counts[1])


def _aggregate(aggregates: str, select: str, session_id: UUID, parts: Sequence[_Part]) -> list[int]:
    """Return aggregates over the rows that fulfill one of the parts. No row may fulfill two.

    A single condition with OR would make databases read everything.
    """
    rows = " UNION ALL ".join(f"{select} AND {condition}" for condition, _ in parts)
    session_key = adapt_uuid(session_id)
    parameters: list[Any] = [value for _, limits in parts for value in (session_key, *limits)]
    [values] = fetch_rows(f"SELECT {aggregates} FROM ({rows}) live", parameters)  # noqa: S608
    return [int(value or 0) for value in values]
