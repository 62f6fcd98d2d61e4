"""What users do with the ledger of a session: they add, change, pin, drop and delete lines.

Each change is sent from the next request on, and recognition leaves a line that a user changed
alone.
"""

from collections.abc import Callable, Mapping
from uuid import UUID

from compaction.memory.ledger import store
from compaction.memory.models import LedgerLine, StandingRule
from compaction.sessions.background import change_and_publish


class LedgerFull(Exception):
    """The session has as many lines as it may have."""


class NoSuchLine(Exception):
    """The session has no such line."""


def add_line(session_id: UUID, fields: Mapping[str, object]) -> LedgerLine:
    """Store a line that a user wrote, and return it. Raises LedgerFull and NoSuchSession."""

    def insert_line() -> LedgerLine:
        if LedgerLine.objects.filter(session=session_id).count() >= store.MAX_LINES:
            raise LedgerFull
        line = LedgerLine(session_id=session_id, role="user", is_edited=True, **fields)
        line.save()
        return line

    return change_and_publish(session_id, insert_line)


def change_line(
    session_id: UUID,
    line_id: int,
    fields: Mapping[str, object],
    *,
    check: Callable[[LedgerLine], None] = lambda line: None,
) -> LedgerLine:
    """Write fields of a line, and return it. Raises NoSuchLine and NoSuchSession.

    A line that is only pinned may still be superseded by what is said later. `check` is called with
    the locked line before it is changed; what it raises keeps the line.
    """

    def update_line() -> LedgerLine:
        line = load_line(session_id, line_id)
        check(line)
        for name, value in fields.items():
            line.is_edited |= name != "pinned" and getattr(line, name) != value
            setattr(line, name, value)
        if line.status != LedgerLine.Status.SUPERSEDED:
            line.superseded_by = None
        line.save()
        if line.is_edited:
            _clear_repetitions(line)
        _update_rule(line)
        return line

    return change_and_publish(session_id, update_line)


def delete_line(
    session_id: UUID, line_id: int, *, check: Callable[[LedgerLine], None] = lambda line: None
) -> None:
    """Delete a line. Raises NoSuchLine and NoSuchSession.

    What was recognized stays in the table without its text, so that it does not come back when the
    message is read again. `check` is called with the locked line before.
    """

    def remove_line() -> None:
        line = load_line(session_id, line_id)
        check(line)
        StandingRule.objects.filter(line=line).delete()
        if not line.original_text:
            line.delete()
            return
        line.status = LedgerLine.Status.DROPPED
        line.text = ""
        line.save()
        _clear_repetitions(line)

    change_and_publish(session_id, remove_line)


def load_line(session_id: UUID, line_id: int) -> LedgerLine:
    """Return a line of the session. Raises NoSuchLine."""
    line = store.select_lines(session_id).filter(pk=line_id).first()
    if line is None:
        raise NoSuchLine
    return line


def _update_rule(line: LedgerLine) -> None:
    """Let the standing rule that was made of a line follow what a user does to the line."""
    rule = StandingRule.objects.filter(line=line)
    if line.status == LedgerLine.Status.DROPPED:
        rule.delete()
    else:
        rule.update(kind=line.kind, text=line.text)


def _clear_repetitions(line: LedgerLine) -> None:
    """Delete what else was recognized in the same sentence, because a user has decided on it."""
    if not line.original_text:
        return
    repetitions = LedgerLine.objects.filter(
        session=line.session_id, seq=line.seq, original_text=line.original_text
    )
    repetitions.exclude(pk=line.pk).update(status=LedgerLine.Status.DROPPED, text="")
