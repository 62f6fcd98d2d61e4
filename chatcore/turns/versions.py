"""Versions of a conversation: what an edit or another answer supersedes is kept, and can be brought back.

What is current is one path through all that was ever said, in the order of `seq`. Superseding takes the end of the path away: its messages
get a `branch` of their own, and `branch_after`, the seq of the message it followed. Bringing a branch back first brings back the one that
it followed, then takes away whatever follows there now.
"""

from collections.abc import Collection
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from chatcore.context import builder, revisions
from chatcore.events import log as event_log
from chatcore.models import Message, Session
from chatcore.turns.leases import locked, refuse_open_turn
from chatcore.turns.recorder import completed, created, next_message


class Superseded(Exception):
    """The message is of an earlier version; nothing can be built on it before it is brought back."""


class NothingToAnswer(Exception):
    """No user message stands before the answer that is to be given anew."""


def current(session: Session, message: Message) -> Message:
    """The message as it now is, the session's row being locked. Raises Superseded."""
    fresh: Message = session.messages.get(pk=message.pk)
    if fresh.branch is not None:
        raise Superseded("The message was superseded; bring its version back first.")
    return fresh


def question_of(session: Session, message: Message) -> Message:
    """The user's message that this one answers, or itself. Raises NothingToAnswer."""
    asked = (
        session.messages.current()
        .filter(role=Message.Role.USER, seq__lte=message.seq)
        .order_by("-seq")
        .first()
    )
    if asked is None:
        raise NothingToAnswer("No user message stands before this one.")
    return asked


def answer_to(session: Session, question: Message) -> Message | None:
    """The newest that was said to a question, as far as it is current."""
    said = session.messages.current().filter(seq__gt=question.seq).order_by("seq")
    following = said.filter(role=Message.Role.USER).values_list("seq", flat=True).first()
    if following:
        said = said.filter(seq__lt=following)
    return said.filter(role=Message.Role.ASSISTANT).last()


def supersede(
    session: Session, *, after: Message | None = None, since: Message | None = None
) -> None:
    """Take away what follows `after`, or `since` and what follows it; the session's row is locked.

    No summary speaks of it from then on. `after` is sent again as it is: what follows is to answer it.
    """
    assert after or since
    taken = (
        _take_away(session, after_seq=after.seq)
        if after
        else _take_away(session, after_seq=_before(session, since))
    )
    hidden = {after.seq} if after and after.seq < (session.compact_boundary_seq or 0) else set()
    _changed(session, taken | hidden)


def reword(message: Message, content: str) -> Message:
    """Put other words in place of an answer's; what followed is superseded with it. Raises TurnRunning, Superseded."""
    with transaction.atomic():
        session = locked(message.session_id)
        refuse_open_turn(session)
        old = current(session, message)
        supersede(session, since=old)
        new = next_message(
            session.pk, None, role=old.role, content=content, model=old.model, replaces=old
        )
        event_log.append(
            session.pk, ("message.created", created(new)), ("message.completed", completed(new))
        )
        return new


def restore(message: Message) -> Message:
    """Bring back the version that a message belongs to; the present one is superseded. Raises TurnRunning."""
    with transaction.atomic():
        session = locked(message.session_id)
        refuse_open_turn(session)
        branches = _lineage(session, session.messages.get(pk=message.pk).branch)
        changed: set[int] = set()
        for branch, after_seq in branches:
            changed |= _take_away(session, after_seq=after_seq)
            kept = session.messages.filter(branch=branch)
            changed |= set(kept.values_list("seq", flat=True))
            kept.update(branch=None, branch_after=None)
        if changed:
            _changed(session, changed)
        message.refresh_from_db()
        return message


def places(session_id: UUID) -> dict[int, list[int]]:
    """For each message of the session that has other versions, the ids of all of them, oldest first. One query over those alone."""
    linked = Message.objects.filter(session_id=session_id, replaces__isnull=False)
    groups: dict[int, list[int]] = {}
    for pk, replaced in linked.order_by("pk").values_list("pk", "replaces_id"):
        groups[pk] = groups.setdefault(replaced, [replaced])
        groups[pk].append(pk)
    return groups


def _take_away(session: Session, *, after_seq: int) -> set[int]:
    rows = session.messages.current().filter(seq__gt=after_seq)
    seqs = set(rows.values_list("seq", flat=True))
    rows.update(branch=uuid4(), branch_after=after_seq)
    return seqs


def _before(session: Session, message: Message | None) -> int:
    assert message
    earlier = session.messages.current().filter(seq__lt=message.seq).order_by("-seq")
    return earlier.values_list("seq", flat=True).first() or 0


def _lineage(session: Session, branch: UUID | None) -> list[tuple[UUID, int]]:
    """The branch and those it grew on, the oldest first, each with the seq of the message it follows."""
    found: list[tuple[UUID, int]] = []
    while branch:
        after_seq = (
            session.messages.filter(branch=branch).values_list("branch_after", flat=True).first()
            or 0
        )
        found.append((branch, after_seq))
        branch = session.messages.filter(seq=after_seq).values_list("branch", flat=True).first()
    return found[::-1]


def _changed(session: Session, seqs: Collection[int]) -> None:
    """Other messages are current: no summary of what is not, their number, and a word to open pages."""
    revisions.uncover(session, seqs)
    guard = builder.guard()
    if guard:
        guard.uncovered(session, seqs)
    count = session.messages.current().count()
    Session.objects.filter(pk=session.pk).update(message_count=count, updated_at=timezone.now())
    event_log.append(session.pk, ("session.updated", {"fields": ["message_count", "messages"]}))
