"""What must hold of every stored session, whatever was killed; `chatcore verify` asks."""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Max, Min
from django.utils import timezone

from chatcore.context import invariants
from chatcore.models import Message, Session, Turn
from chatcore.sessions.truncation import cut_tool_result
from chatcore.turns import client_tools

GRACE = timedelta(seconds=90)  # within which a dead process's turn is closed


def violations(session: Session) -> Iterator[str]:
    """Sentences on everything that does not hold; none when all does."""
    yield from _counting(session)
    yield from invariants.violations(session)
    yield from _branches(session)
    yield from _turns(session)
    yield from _tool_results(session)


def _counting(session: Session) -> Iterator[str]:
    last = session.messages.aggregate(last=Max("seq"))["last"] or 0
    if last > session.last_seq:
        yield f"message {last} lies beyond last_seq {session.last_seq}"
    current = session.messages.current().count()
    if current != session.message_count:
        yield f"message_count says {session.message_count}, there are {current}"
    newest = session.events.aggregate(newest=Max("seq"))["newest"] or 0
    if newest > session.last_event_seq:
        yield f"event {newest} lies beyond last_event_seq {session.last_event_seq}"


def _branches(session: Session) -> Iterator[str]:
    """What was superseded together follows one earlier message; what is current follows from `seq` alone."""
    superseded = session.messages.exclude(branch=None).order_by()
    branches = superseded.values("branch").annotate(
        first=Min("seq"), after=Min("branch_after"), until=Max("branch_after")
    )
    for branch in branches:
        if branch["after"] is None or branch["after"] != branch["until"]:
            yield f"the branch of message {branch['first']} follows no one message"
        elif branch["after"] >= branch["first"]:
            yield f"the branch of message {branch['first']} follows a later one, {branch['after']}"
    current = session.messages.current()
    for seq in current.exclude(branch_after=None).values_list("seq", flat=True):
        yield f"message {seq} is current and has a place in a branch"
    for seq in current.filter(replaces__isnull=False, replaces__branch=None).values_list(
        "seq", flat=True
    ):
        yield f"message {seq} and the one it replaces are both current"


def _turns(session: Session) -> Iterator[str]:
    if session.turns.filter(status__in=Turn.OPEN).count() > 1:
        yield "more than one turn is running or waiting"
    for turn in session.turns.filter(status=Turn.Status.WAITING):
        if not client_tools.pending(turn):
            yield f"turn {turn.pk} waits for nothing"
    late = session.turns.filter(status=Turn.Status.RUNNING, lease_until__lt=timezone.now() - GRACE)
    yield from (f"turn {turn.pk} is running without a process" for turn in late)
    orphans = session.messages.filter(status=Message.Status.STREAMING).exclude(
        turn__status=Turn.Status.RUNNING
    )
    yield from (f"message {message.seq} is streaming in no running turn" for message in orphans)


def _tool_results(session: Session) -> Iterator[str]:
    for seq, content in (
        session.messages.filter(role=Message.Role.TOOL).values_list("seq", "content").iterator()
    ):
        if cut_tool_result(content)[0] != content:
            yield f"the tool result {seq} is longer than its limit"
