"""What must hold of every stored session, whatever was killed; `chatcore verify` asks."""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Max, Min
from django.utils import timezone

from chatcore.context import invariants
from chatcore.models import Message, Session, Turn
from chatcore.sessions.truncation import cut_tool_result
from chatcore.turns import client_tools

GRACE_PERIOD = timedelta(seconds=90)  # within which a dead process's turn is closed


def find_violations(session: Session) -> Iterator[str]:
    """Sentences on everything that does not hold; none when all does."""
    yield from _check_counts(session)
    yield from invariants.find_context_violations(session)
    yield from _check_branches(session)
    yield from _check_turns(session)
    yield from _check_tool_results(session)


def _check_counts(session: Session) -> Iterator[str]:
    last_seq = session.messages.aggregate(last=Max("seq"))["last"] or 0
    if last_seq > session.last_seq:
        yield f"message {last_seq} lies beyond last_seq {session.last_seq}"
    current_count = session.messages.exclude_superseded().count()
    if current_count != session.message_count:
        yield f"message_count says {session.message_count}, there are {current_count}"
    newest_event_seq = session.events.aggregate(newest=Max("seq"))["newest"] or 0
    if newest_event_seq > session.last_event_seq:
        yield f"event {newest_event_seq} lies beyond last_event_seq {session.last_event_seq}"


def _check_branches(session: Session) -> Iterator[str]:
    """What was superseded together follows one earlier message; what is current follows from `seq` alone."""
    superseded_messages = session.messages.exclude(branch=None).order_by()
    branches = superseded_messages.values("branch").annotate(
        first=Min("seq"), after=Min("branch_after"), until=Max("branch_after")
    )
    for branch in branches:
        if branch["after"] is None or branch["after"] != branch["until"]:
            yield f"the branch of message {branch['first']} follows no one message"
        elif branch["after"] >= branch["first"]:
            yield f"the branch of message {branch['first']} follows a later one, {branch['after']}"
    current_messages = session.messages.exclude_superseded()
    for seq in current_messages.exclude(branch_after=None).values_list("seq", flat=True):
        yield f"message {seq} is current and has a place in a branch"
    for seq in current_messages.filter(replaces__isnull=False, replaces__branch=None).values_list(
        "seq", flat=True
    ):
        yield f"message {seq} and the one it replaces are both current"


def _check_turns(session: Session) -> Iterator[str]:
    if session.turns.filter(status__in=Turn.OPEN_STATUSES).count() > 1:
        yield "more than one turn is running or waiting"
    for turn in session.turns.filter(status=Turn.Status.WAITING):
        if not client_tools.find_pending_calls(turn):
            yield f"turn {turn.pk} waits for nothing"
    late_turns = session.turns.filter(
        status=Turn.Status.RUNNING, lease_until__lt=timezone.now() - GRACE_PERIOD
    )
    yield from (f"turn {turn.pk} is running without a process" for turn in late_turns)
    orphan_messages = session.messages.filter(status=Message.Status.STREAMING).exclude(
        turn__status=Turn.Status.RUNNING
    )
    yield from (
        f"message {message.seq} is streaming in no running turn" for message in orphan_messages
    )


def _check_tool_results(session: Session) -> Iterator[str]:
    for seq, content in (
        session.messages.filter(role=Message.Role.TOOL).values_list("seq", "content").iterator()
    ):
        if cut_tool_result(content)[0] != content:
            yield f"the tool result {seq} is longer than its limit"
