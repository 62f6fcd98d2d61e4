"""How a turn ends, and the end of those whose process died."""

import logging
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatcore.events import log as event_log
from chatcore.models import Message, Turn
from chatcore.threads import in_thread
from chatcore.turns.leases import TurnLost, hold
from chatcore.turns.recorder import completed
from chatcore.turns.runner import generator

logger = logging.getLogger(__name__)

RECOVER_SECONDS = 10.0  # with the lease: a dead process's turn is closed within 45 seconds
ENDINGS = {
    Turn.Status.COMPLETED: "turn.completed",
    Turn.Status.CANCELLED: "turn.cancelled",
    Turn.Status.FAILED: "turn.failed",
    Turn.Status.INTERRUPTED: "turn.failed",
}


def end(turn: Turn, status: str, problem: dict[str, Any] | None = None, **data: Any) -> None:
    """Close the turn and say so, inside a transaction that holds it."""
    turn.status, turn.error, turn.finished_at = status, problem, timezone.now()
    turn.save(update_fields=["status", "error", "finished_at"])
    said = {key: problem[key] for key in ("type", "detail")} if problem else {}
    event_log.append(
        turn.session_id, (ENDINGS[Turn.Status(status)], {"turn": str(turn.pk), **said, **data})
    )


def problem(
    kind: str, detail: str, *, status: int = 502, retry_after: float | None = None
) -> dict[str, Any]:
    """Why a turn failed, as it is stored: `status` is what HTTP answers with, `retry_after` seconds."""
    return {"type": kind, "detail": detail, "status": status, "retry_after": retry_after}


def stopped() -> dict[str, Any]:
    """The problem of a turn whose process stopped or died."""
    return problem("interrupted", "The server stopped while answering; what was said is kept.")


def cancelled(turn_id: UUID) -> None:
    """Close a turn whose task was canceled: by the user, or because the process stops."""
    by_user = Turn.objects.filter(pk=turn_id, cancel_requested=True).exists()
    if by_user:
        _finish(turn_id, Turn.Status.CANCELLED, None)
    else:
        _finish(turn_id, Turn.Status.INTERRUPTED, stopped())


def failed(turn_id: UUID, problem: dict[str, Any]) -> None:
    """Close a turn that came to nothing."""
    logger.warning("turn %s failed: %s: %s", turn_id, problem["type"], problem["detail"])
    _finish(turn_id, Turn.Status.FAILED, problem)


def recover(session_id: UUID | None = None) -> int:
    """Close the turns whose process died, all or a session's: what they had said is kept as `interrupted`. Returns how many."""
    dead = Turn.objects.filter(status=Turn.Status.RUNNING, lease_until__lt=timezone.now())
    return sum(
        _close_dead(turn) for turn in (dead.filter(session_id=session_id) if session_id else dead)
    )


def start_recovering() -> None:
    """Look for dead turns for as long as this process lives."""
    generator.every(RECOVER_SECONDS, lambda: in_thread(recover))


def _close_dead(turn: Turn) -> bool:
    with transaction.atomic():
        mine = Turn.objects.filter(
            pk=turn.pk, status=Turn.Status.RUNNING, lease_until__lt=timezone.now()
        )
        if not mine.update(status=Turn.Status.INTERRUPTED, finished_at=timezone.now()):
            return False
        for message in turn.messages.filter(status=Message.Status.STREAMING):
            message.content, message.reasoning = event_log.spoken_so_far(message.pk)
            message.status = Message.Status.INTERRUPTED
            message.save()
            event_log.append(turn.session_id, ("message.completed", completed(message)))
        end(turn, Turn.Status.INTERRUPTED, stopped())
    logger.warning("recovered turn %s of session %s", turn.pk, turn.session_id)
    return True


def _finish(turn_id: UUID, status: str, problem: dict[str, Any] | None) -> None:
    try:
        with transaction.atomic():
            hold(turn_id)
            end(Turn.objects.get(pk=turn_id), status, problem)
    except TurnLost:
        logger.warning("turn %s was closed elsewhere, or deleted with its session", turn_id)
