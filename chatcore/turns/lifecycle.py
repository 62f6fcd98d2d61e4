"""End turns, also those whose process has died."""

import logging
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatcore.events import log as event_log
from chatcore.events.types import EventType, TurnEndPayload, TurnEndType
from chatcore.models import Message, Turn
from chatcore.threads import run_in_thread
from chatcore.turns.leases import TurnLost, renew_lease
from chatcore.turns.recorder import build_completed_payload
from chatcore.turns.runner import turn_runner

logger = logging.getLogger(__name__)

# Together with the length of a lease: the turn of a dead process is closed within 45 seconds.
RECOVERY_SECONDS = 10.0
END_EVENTS: dict[Turn.Status, TurnEndType] = {
    Turn.Status.COMPLETED: EventType.TURN_COMPLETED,
    Turn.Status.CANCELLED: EventType.TURN_CANCELLED,
    Turn.Status.FAILED: EventType.TURN_FAILED,
    Turn.Status.INTERRUPTED: EventType.TURN_FAILED,
}


def end_turn(
    turn: Turn,
    status: str,
    problem: dict[str, Any] | None = None,
    *,
    message_id: int | None = None,
) -> None:
    """Close the turn and append the event, inside a transaction that has locked the turn's row."""
    turn.status = status
    turn.error = problem
    turn.finished_at = timezone.now()
    turn.save(update_fields=["status", "error", "finished_at"])
    payload = TurnEndPayload(turn=str(turn.pk))
    if problem:
        payload["type"] = problem["type"]
        payload["detail"] = problem["detail"]
    if message_id is not None:
        payload["message"] = message_id
    event_log.append_events(turn.session_id, (END_EVENTS[Turn.Status(status)], payload))


def build_problem(
    kind: str, detail: str, *, status: int = 502, retry_after: float | None = None
) -> dict[str, Any]:
    """Return the reason of a failure in the form in which it is stored with the turn.

    `status` is the HTTP status of the answer, and `retry_after` a number of seconds.
    """
    return {"type": kind, "detail": detail, "status": status, "retry_after": retry_after}


def build_stopped_problem() -> dict[str, Any]:
    """Return the reason of a turn whose process stopped or died."""
    return build_problem(
        "interrupted", "The server stopped while answering; what was said is kept."
    )


def close_cancelled_turn(turn_id: UUID) -> None:
    """Close a turn whose task was cancelled by the user, or because the process stops."""
    is_user_cancel = Turn.objects.filter(pk=turn_id, cancel_requested=True).exists()
    if is_user_cancel:
        _close_turn(turn_id, Turn.Status.CANCELLED, None)
    else:
        _close_turn(turn_id, Turn.Status.INTERRUPTED, build_stopped_problem())


def close_failed_turn(turn_id: UUID, problem: dict[str, Any]) -> None:
    """Close a turn that failed for this reason."""
    logger.warning("turn %s failed: %s: %s", turn_id, problem["type"], problem["detail"])
    _close_turn(turn_id, Turn.Status.FAILED, problem)


def recover_dead_turns(session_id: UUID | None = None) -> int:
    """Close the turns whose process has died, of all sessions or of one; return their number.

    The text that had arrived is stored as interrupted. Do not call it while a session is locked:
    it locks turns first.
    """
    dead_turns = Turn.objects.filter(status=Turn.Status.RUNNING, lease_until__lt=timezone.now())
    if session_id:
        dead_turns = dead_turns.filter(session_id=session_id)
    return sum(_close_dead_turn(turn) for turn in dead_turns)


def start_recovery() -> None:
    """Look for dead turns every RECOVERY_SECONDS while this process lives."""
    turn_runner.run_periodically(RECOVERY_SECONDS, lambda: run_in_thread(recover_dead_turns))


def _close_dead_turn(turn: Turn) -> bool:
    with transaction.atomic():
        # The UPDATE checks again, because the process may only have been slow and have renewed its
        # lease since, and because another process may close the turn at the same time.
        dead_turn = Turn.objects.filter(
            pk=turn.pk, status=Turn.Status.RUNNING, lease_until__lt=timezone.now()
        )
        if not dead_turn.update(status=Turn.Status.INTERRUPTED, finished_at=timezone.now()):
            return False
        for message in turn.messages.filter(status=Message.Status.STREAMING):
            message.content, message.reasoning = event_log.join_deltas(message.pk)
            message.status = Message.Status.INTERRUPTED
            message.save()
            event_log.append_events(
                turn.session_id, (EventType.MESSAGE_COMPLETED, build_completed_payload(message))
            )
        end_turn(turn, Turn.Status.INTERRUPTED, build_stopped_problem())
    logger.warning("recovered turn %s of session %s", turn.pk, turn.session_id)
    return True


def _close_turn(turn_id: UUID, status: str, problem: dict[str, Any] | None) -> None:
    try:
        with transaction.atomic():
            renew_lease(turn_id)
            end_turn(Turn.objects.get(pk=turn_id), status, problem)
    except TurnLost:
        logger.warning("turn %s was closed elsewhere, or deleted with its session", turn_id)
