"""Keep the versions of a conversation: what an edit or another answer supersedes can be restored.

The current messages are one path through everything that was ever stored, in the order of `seq`.
Superseding cuts off the end of this path: its messages get the same new `branch`, and
`branch_after` is the number of the message that they followed. To restore a branch, the branch
that it grew on is restored first, and the messages that follow there now are superseded.
"""

from collections.abc import Collection
from uuid import UUID, uuid4

from django.db import transaction

from chatcore.context import revisions
from chatcore.models import Message, Session
from chatcore.sessions.changes import record_history_change
from chatcore.signals import messages_superseded
from chatcore.turns.leases import refuse_open_turn
from chatcore.turns.messages import append_message, build_completed_event, build_created_event


class MessageSuperseded(Exception):
    """The message belongs to a version that is not current; restore that version first."""


class NoQuestionToAnswer(Exception):
    """There is no user message before the answer that is to be generated again."""


def get_current_message(session: Session, message: Message) -> Message:
    """Load the message again, under the lock of its session's row. Raises MessageSuperseded."""
    current_message: Message = session.messages.get(pk=message.pk)
    if current_message.branch is not None:
        raise MessageSuperseded("The message was superseded; bring its version back first.")
    return current_message


def find_question(session: Session, message: Message) -> Message:
    """Return the user message that this message answers, or itself if it is one.

    Raises NoQuestionToAnswer.
    """
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
    """Return the last current answer to a question, before the next question."""
    messages = session.messages.exclude_superseded().filter(seq__gt=question.seq).order_by("seq")
    return messages.filter_before_question().filter(role=Message.Role.ASSISTANT).last()


def supersede_messages(
    session: Session, *, after_message: Message | None = None, from_message: Message | None = None
) -> None:
    """Supersede the messages after `after_message`, or `from_message` and those after it.

    Summaries that cover them are reverted. The session's row must be locked.
    """
    changed_seqs: set[int] = set()
    if after_message:
        after_seq = after_message.seq
        # The next answer is to answer this message. If a summary covers it, the model would read
        # only the summary of its question, so that summary is reverted too.
        if after_seq < (session.compact_boundary_seq or 0):
            changed_seqs.add(after_seq)
    else:
        assert from_message
        after_seq = _find_previous_seq(session, from_message)
    changed_seqs |= _supersede_after(session, after_seq=after_seq)
    _record_change(session, changed_seqs)


def edit_answer(message: Message, content: str) -> Message:
    """Store another version of an answer, and supersede it with everything that follows.

    Raises TurnRunning and MessageSuperseded.
    """
    with transaction.atomic():
        session = Session.objects.lock(message.session_id)
        refuse_open_turn(session)
        old_message = get_current_message(session, message)
        supersede_messages(session, from_message=old_message)
        return append_message(
            session.pk,
            None,
            build_created_event,
            build_completed_event,
            role=old_message.role,
            content=content,
            model=old_message.model,
            replaces=old_message,
        )


def restore_version(message: Message) -> Message:
    """Restore the version that a message belongs to, and supersede the current one.

    Raises TurnRunning.
    """
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
    """Return the ids of all versions of a message, oldest first, for each message that has several.

    All versions of a message share one list. One query reads only the messages that replace others.
    """
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


def _find_previous_seq(session: Session, message: Message) -> int:
    earlier_messages = (
        session.messages.exclude_superseded().filter(seq__lt=message.seq).order_by("-seq")
    )
    return earlier_messages.values_list("seq", flat=True).first() or 0


def _trace_lineage(session: Session, branch: UUID | None) -> list[tuple[UUID, int]]:
    """Return the branch and those that it grew on, each with the number of the message it follows.

    The oldest branch comes first.
    """
    lineage: list[tuple[UUID, int]] = []
    while branch:
        branch_messages = session.messages.filter(branch=branch)
        after_seq = branch_messages.values_list("branch_after", flat=True).first() or 0
        lineage.append((branch, after_seq))
        branch = session.messages.filter(seq=after_seq).values_list("branch", flat=True).first()
    return lineage[::-1]


def _record_change(session: Session, seqs: Collection[int]) -> None:
    """Revert summaries of these messages and announce that other messages are current now."""
    revisions.revert_summaries_covering(session, seqs)
    messages_superseded.send(None, session=session, seqs=seqs)
    record_history_change(session.pk)
