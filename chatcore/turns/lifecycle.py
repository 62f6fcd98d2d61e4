"""End turns: write the end, with what had arrived of the answer.

Also those of processes that have died, and the messages that were left streaming.
"""

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import Error as DatabaseProblem
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.outages import find_outage
from chatcore.base.metrics import counts
from chatcore.base.process_locks import forget_processes, list_dead_processes
from chatcore.base.row_by_row import try_each
from chatcore.base.runner import turn_runner
from chatcore.base.threads import RECOVERY
from chatcore.base.tracing import get_traces
from chatcore.events import log as event_log
from chatcore.events.types import EventType, NewEvent, TurnEndPayload, TurnEndType
from chatcore.models import Message, Session, Turn
from chatcore.tools.mcp import turn_servers
from chatcore.turns.leases import (
    LockedTurn,
    TurnLost,
    lock_running_turn,
    query_dead_turns,
)
from chatcore.turns.messages import build_completed_payload
from chatcore.turns.recorder import AnswerRecorder

logger = logging.getLogger(__name__)

END_EVENTS: dict[Turn.Status, TurnEndType] = {
    Turn.Status.COMPLETED: EventType.TURN_COMPLETED,
    Turn.Status.CANCELLED: EventType.TURN_CANCELLED,
    Turn.Status.FAILED: EventType.TURN_FAILED,
    Turn.Status.INTERRUPTED: EventType.TURN_FAILED,
}

# Together with the length of a lease: the turn of a dead process is closed within 45 seconds.
RECOVERY_SECONDS = 10.0
# A clock that differs from the monotonic one by more since the last round was set anew.
CLOCK_STEP = timedelta(seconds=5)


def end_turn(
    turn: Turn,
    status: str,
    problem: Mapping[str, object] | None = None,
    *,
    answer: Message | None = None,
    earlier_events: Sequence[NewEvent] = (),
    later_events: Sequence[NewEvent] = (),
) -> None:
    """Close the turn and append the event, inside a transaction that has locked the turn's row.

    `earlier_events` are those of its last message, and `later_events` follow the end. All are
    stored in the same statements.
    """
    turn.status = status
    turn.error = problem
    turn.finished_at = timezone.now()
    turn.process = None
    turn.save(update_fields=["status", "error", "finished_at", "process"])
    turn_servers.forget_secrets(turn)
    end_event = build_end_event(turn, answer=answer)
    event_log.append_events(turn.session_id, *earlier_events, end_event, *later_events)


def build_end_event(
    turn: Turn, *, answer: Message | None = None
) -> tuple[TurnEndType, TurnEndPayload]:
    """Return the event that ends a closed turn. `answer` is its last message, if it completed."""
    payload = TurnEndPayload(turn=str(turn.pk))
    if turn.error:
        payload["type"] = turn.error["type"]
        payload["detail"] = turn.error["detail"]
    if answer is not None:
        payload["message"] = answer.pk
        payload["context_trimmed"] = answer.context_trimmed
    return END_EVENTS[Turn.Status(turn.status)], payload


def build_problem(
    kind: str, detail: str, *, status: int = 502, retry_after: float | None = None
) -> dict[str, object]:
    """Return the reason of a failure in the form in which it is stored with the turn.

    `status` is the HTTP status of the answer, and `retry_after` a number of seconds.
    """
    return {"type": kind, "detail": detail, "status": status, "retry_after": retry_after}


def build_unexpected_problem(error: Exception) -> dict[str, object]:
    """Return the reason of a failure that is nobody's answer: an outage by its name, or ours."""
    outage = find_outage(error)
    if outage:
        detail = f"{outage.detail} Your message is kept."
        return build_problem(
            outage.type, detail, status=outage.status, retry_after=outage.retry_after
        )
    return build_problem(
        "internal_error", "Something went wrong on our side; your message is kept.", status=500
    )


def build_stopped_problem() -> dict[str, object]:
    """Return the reason of a turn whose process stopped or died."""
    return build_problem(
        "interrupted", "The server stopped while answering; what was said is kept."
    )


def close_cancelled_turn(turn_id: UUID, recorder: AnswerRecorder | None) -> str:
    """Close a turn whose task was cancelled by the user, or because the process stops.

    Returns the status that is stored; empty if the turn was lost.
    """
    is_user_cancel = Turn.objects.filter(pk=turn_id, cancel_requested=True).exists()
    if is_user_cancel:
        return _close_turn(turn_id, recorder, Turn.Status.CANCELLED, None)
    return _close_turn(turn_id, recorder, Turn.Status.INTERRUPTED, build_stopped_problem())


def close_failed_turn(
    turn_id: UUID, recorder: AnswerRecorder | None, problem: Mapping[str, object]
) -> str:
    """Close a turn that failed for this reason. Returns as `close_cancelled_turn` does."""
    logger.warning("turn %s failed: %s: %s", turn_id, problem["type"], problem["detail"])
    return _close_turn(turn_id, recorder, Turn.Status.FAILED, problem)


def _close_turn(
    turn_id: UUID,
    recorder: AnswerRecorder | None,
    status: str,
    problem: Mapping[str, object] | None,
) -> str:
    """Store what has arrived of the answer, and the turn's end, in one transaction.

    So nobody can see a turn that is over and a message that streams for ever.
    """
    try:
        with recorder.open_transaction() if recorder else _open_transaction(turn_id):
            message_events = recorder.interrupt_message() if recorder else []
            turn = Turn.objects.get(pk=turn_id)
            end_turn(turn, status, problem, earlier_events=message_events)
            transaction.on_commit(partial(count_end, turn, recorder.model if recorder else ""))
    except TurnLost:
        return ""
    return status


def count_end(turn: Turn, model: str) -> None:
    """Count a turn whose end is stored, for those who watch the server."""
    counts.count_turn(
        model=model,
        outcome=turn.status,
        started_at=turn.started_at,
        failure_type=turn.error["type"] if turn.error else "",
        recalled=bool(turn.recalled),
    )
    attributes = {
        "gen_ai.conversation.id": str(turn.session_id),
        "gen_ai.request.model": model or None,
        "chatcore.turn.status": str(turn.status),
    }
    is_failure = turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED)
    error_type = (turn.error or {}).get("type", "") if is_failure else ""
    get_traces().note(attributes, error_type=error_type)


@contextlib.contextmanager
def _open_transaction(turn_id: UUID) -> Iterator[LockedTurn]:
    with transaction.atomic():
        yield lock_running_turn(turn_id)


def recover_dead_turns(session_id: UUID | None = None) -> int:
    """Close the turns whose process has died, of all sessions or of one; return their number.

    The text that had arrived is stored as interrupted. Do not call it while a session is locked:
    it locks turns first.
    """
    # What this process answers is alive, whatever kept its lease from being renewed.
    dead_turns = query_dead_turns().exclude(pk__in=turn_runner.list_turns())
    if session_id:
        dead_turns = dead_turns.filter(session=session_id)
    # The keys alone: to load a broken row may fail as well.
    turn_ids = list(dead_turns.values_list("pk", flat=True))
    return sum(try_each(turn_ids, close_dead_turn, what="close the dead turn"))


def mend_streaming_messages() -> int:
    """Close the messages that are still streaming in turns that are over; return their number."""
    left_messages = Message.objects.filter(status=Message.Status.STREAMING).exclude(
        turn__status__in=Turn.OPEN_STATUSES
    )
    message_ids = list(left_messages.values_list("pk", flat=True))
    return sum(try_each(message_ids, _mend_streaming_message, what="close the streaming message"))


def start_recovery() -> None:
    """Look for dead turns every RECOVERY_SECONDS while this process lives."""
    turn_runner.run_periodically(RECOVERY_SECONDS, RecoveryChore().run)


class RecoveryChore:
    """Closes dead turns, and leaves a round out when leases say nothing of who lives.

    While the database is away no lease can be renewed, and when its clock is set, leases written
    before are worth nothing. Those that live renew their leases before the next round.
    """

    def __init__(self) -> None:
        self._was_away = False
        self._last_times: tuple[datetime, float] | None = None

    async def run(self) -> None:
        """Close dead turns. Raises OperationalError if the database is away."""
        await RECOVERY.run(self.recover)

    def recover(self) -> int:
        """Close dead turns and return their number. Raises OperationalError."""
        try:
            is_clock_set = self._notice_clock_step()
            if self._was_away or is_clock_set:
                self._was_away = False
                return 0
            dead_processes = list_dead_processes()
            count = recover_dead_turns()
            mend_streaming_messages()
            forget_processes(dead_processes)
        except DatabaseProblem as error:
            self._was_away = find_outage(error) is not None
            raise
        return count

    def _notice_clock_step(self) -> bool:
        """Return True if the database's clock was set since the last round."""
        now, seconds = read_clock(), time.monotonic()
        last_times, self._last_times = self._last_times, (now, seconds)
        if last_times is None:
            return False
        expected_now = last_times[0] + timedelta(seconds=seconds - last_times[1])
        is_set = abs(now - expected_now) > CLOCK_STEP
        if is_set:
            logger.warning("the clock was set by %s; leases are renewed first", now - expected_now)
        return is_set


def close_dead_turn(turn_id: UUID) -> bool:
    """Close a turn whose process has died; return False if it lives after all.

    It ends as cancelled if a user had asked for that.
    """
    with transaction.atomic():
        # Locked and asked again, because the process may only have been slow and have renewed its
        # lease since, and because another process may close the turn at the same time.
        dead_turns = query_dead_turns().filter(pk=turn_id)
        turn = dead_turns.select_for_update().only("session", "cancel_requested").first()
        if turn is None:
            return False
        _mend_counters(turn.session_id)
        for message in turn.messages.filter(status=Message.Status.STREAMING):
            _interrupt_from_log(message)
        if turn.cancel_requested:
            end_turn(turn, Turn.Status.CANCELLED)
        else:
            end_turn(turn, Turn.Status.INTERRUPTED, build_stopped_problem())
    logger.warning("recovered turn %s of session %s", turn.pk, turn.session_id)
    return True


def _mend_counters(session_id: UUID) -> None:
    """Let the session's counters go on behind the numbers in use.

    Something outside of Chatcore may have set them back. Then no event could be stored any more,
    so the turn could never end.
    """
    session = Session.objects.filter(pk=session_id).select_for_update(of=("self",)).first()
    if session is None:
        return
    last_seq = session.messages.aggregate(last=Max("seq"))["last"] or 0
    last_event_seq = session.events.aggregate(last=Max("seq"))["last"] or 0
    if last_seq > session.last_seq or last_event_seq > session.last_event_seq:
        logger.error("session %s had counters that were behind its rows", session_id)
        Session.objects.filter(pk=session_id).update(
            last_seq=max(last_seq, session.last_seq),
            last_event_seq=max(last_event_seq, session.last_event_seq),
        )


def _mend_streaming_message(message_id: int) -> bool:
    """Close a message that is still streaming although its turn is over.

    An earlier version could leave one behind when the database stumbled at the end of a turn.
    """
    message = Message.objects.get(pk=message_id)
    with transaction.atomic():
        Session.objects.lock(message.session_id)
        still_streaming = Message.objects.filter(
            pk=message.pk, status=Message.Status.STREAMING
        ).exclude(turn__status__in=Turn.OPEN_STATUSES)
        is_left = still_streaming.exists()
        if is_left:
            _interrupt_from_log(message)
    return is_left


def _interrupt_from_log(message: Message) -> None:
    """Store the words that the event log has of a streaming message, as interrupted."""
    message.content, message.reasoning = event_log.join_deltas(message.pk)
    message.status = Message.Status.INTERRUPTED
    message.save()
    event_log.append_events(
        message.session_id, (EventType.MESSAGE_COMPLETED, build_completed_payload(message))
    )
