"""Versions of a conversation: what an edit or another answer supersedes is kept, and can be brought back.

What is current is one path through all that was ever said, in the order of `seq`. Superseding takes the end of the path away: its messages
get a `branch` of their own, and `branch_after`, the seq of the message it followed. Bringing a branch back first brings back the one that
it followed, then takes away whatever follows there now.
"""

from collections.abc import Collection
from uuid import UUID, uuid4

from django.db import transaction

from chatcore.context import revisions
from chatcore.context.compactor import get_compactor
from chatcore.events import log as event_log
from chatcore.events.types import EventType
from chatcore.models import Message, Session
from chatcore.sessions.changes import record_history_change
from chatcore.turns.leases import refuse_open_turn
from chatcore.turns.recorder import append_message, build_completed_payload, build_created_payload


class MessageSuperseded(Exception):
    """The message is of an earlier version; nothing can be built on it before it is brought back."""


class NoQuestionToAnswer(Exception):
    """No user message stands before the answer that is to be given anew."""


def get_current_message(session: Session, message: Message) -> Message:
    """The message as it now is, the session's row being locked. Raises Superseded."""
    current_message: Message = session.messages.get(pk=message.pk)
    if current_message.branch is not None:
        raise MessageSuperseded("The message was superseded; bring its version back first.")
    return current_message


def find_question(session: Session, message: Message) -> Message:
    """The user's message that this one answers, or itself. Raises NothingToAnswer."""
    question = (
        session.messages.exclude_superseded()
        .filter(role=Message.Role.USER, seq__lte=message.seq)
        .order_by("-seq")
        .first()
    )
    if question is None:
        raise NoQuestionToAnswer("No user message stands before this one.")
    return question


def find_answer(session: Session, question: Message) -> Message | None:
    """The newest that was said to a question, as far as it is current."""
    messages = session.messages.exclude_superseded().filter(seq__gt=question.seq).order_by("seq")
    next_question_seq = (
        messages.filter(role=Message.Role.USER).values_list("seq", flat=True).first()
    )
    if next_question_seq:
        messages = messages.filter(seq__lt=next_question_seq)
    return messages.filter(role=Message.Role.ASSISTANT).last()


def supersede_messages(
    session: Session, *, after_message: Message | None = None, from_message: Message | None = None
) -> None:
    """Take away what follows `after`, or `since` and what follows it; the session's row is locked.

    No summary speaks of it from then on. `after` is sent again as it is: what follows is to answer it.
    """
    assert after_message or from_message
    superseded_seqs = (
        _supersede_after(session, after_seq=after_message.seq)
        if after_message
        else _supersede_after(session, after_seq=_find_previous_seq(session, from_message))
    )
    hidden_seqs = (
        {after_message.seq}
        if after_message and after_message.seq < (session.compact_boundary_seq or 0)
        else set()
    )
    _record_change(session, superseded_seqs | hidden_seqs)


def edit_answer(message: Message, content: str) -> Message:
    """Put other words in place of an answer's; what followed is superseded with it. Raises TurnRunning, Superseded."""
    with transaction.atomic():
        session = Session.objects.lock(message.session_id)
        refuse_open_turn(session)
        old_message = get_current_message(session, message)
        supersede_messages(session, from_message=old_message)
        new_message = append_message(
            session.pk,
            None,
            role=old_message.role,
            content=content,
            model=old_message.model,
            replaces=old_message,
        )
        event_log.append_events(
            session.pk,
            (EventType.MESSAGE_CREATED, build_created_payload(new_message)),
            (EventType.MESSAGE_COMPLETED, build_completed_payload(new_message)),
        )
        return new_message


def restore_version(message: Message) -> Message:
    """Bring back the version that a message belongs to; the present one is superseded. Raises TurnRunning."""
    with transaction.atomic():
        session = Session.objects.lock(message.session_id)
        refuse_open_turn(session)
        branches = _trace_lineage(session, session.messages.get(pk=message.pk).branch)
        changed_seqs: set[int] = set()
        for branch, after_seq in branches:
            changed_seqs |= _supersede_after(session, after_seq=after_seq)
            branch_messages = session.messages.filter(branch=branch)
            changed_seqs |= set(branch_messages.values_list("seq", flat=True))
            branch_messages.update(branch=None, branch_after=None)
        if changed_seqs:
            _record_change(session, changed_seqs)
        message.refresh_from_db()
        return message


def map_message_versions(session_id: UUID) -> dict[int, list[int]]:
    """For each message of the session that has other versions, the ids of all of them, oldest first. One query over those alone."""
    replacements = Message.objects.filter(session_id=session_id, replaces__isnull=False)
    groups: dict[int, list[int]] = {}
    for pk, replaced_id in replacements.order_by("pk").values_list("pk", "replaces_id"):
        groups[pk] = groups.setdefault(replaced_id, [replaced_id])
        groups[pk].append(pk)
    return groups


def _supersede_after(session: Session, *, after_seq: int) -> set[int]:
    rows = session.messages.exclude_superseded().filter(seq__gt=after_seq)
    seqs = set(rows.values_list("seq", flat=True))
    rows.update(branch=uuid4(), branch_after=after_seq)
    return seqs


def _find_previous_seq(session: Session, message: Message | None) -> int:
    assert message
    earlier_messages = (
        session.messages.exclude_superseded().filter(seq__lt=message.seq).order_by("-seq")
    )
    return earlier_messages.values_list("seq", flat=True).first() or 0


def _trace_lineage(session: Session, branch: UUID | None) -> list[tuple[UUID, int]]:
    """The branch and those it grew on, the oldest first, each with the seq of the message it follows."""
    lineage: list[tuple[UUID, int]] = []
    while branch:
        after_seq = (
            session.messages.filter(branch=branch).values_list("branch_after", flat=True).first()
            or 0
        )
        lineage.append((branch, after_seq))
        branch = session.messages.filter(seq=after_seq).values_list("branch", flat=True).first()
    return lineage[::-1]


def _record_change(session: Session, seqs: Collection[int]) -> None:
    """Other messages are current: no summary of what is not, their number, and a word to open pages."""
    revisions.revert_summaries_covering(session, seqs)
    get_compactor().on_messages_superseded(session, seqs)
    record_history_change(session.pk)
