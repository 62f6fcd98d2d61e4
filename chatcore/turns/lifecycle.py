"""End turns: write the end, with what had arrived of the answer."""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatcore.base.databases.outages import find_outage
from chatcore.base.metrics import counts
from chatcore.base.traces import spans
from chatcore.events import log as event_log
from chatcore.events.types import EventType, NewEvent, TurnEndPayload, TurnEndType
from chatcore.models import Turn
from chatcore.tools.mcp import turn_servers
from chatcore.turns.leases import LockedTurn, TurnLost, lock_running_turn
from chatcore.turns.recorder import AnswerRecorder

logger = logging.getLogger(__name__)

END_EVENTS: dict[Turn.Status, TurnEndType] = {
    Turn.Status.COMPLETED: EventType.TURN_COMPLETED,
    Turn.Status.CANCELLED: EventType.TURN_CANCELLED,
    Turn.Status.FAILED: EventType.TURN_FAILED,
    Turn.Status.INTERRUPTED: EventType.TURN_FAILED,
}


def end_turn(
    turn: Turn,
    status: str,
    problem: Mapping[str, object] | None = None,
    *,
    message_id: int | None = None,
    earlier_events: Sequence[NewEvent] = (),
) -> None:
    """Close the turn and append the event, inside a transaction that has locked the turn's row.

    `earlier_events` are those of its last message, which are stored in the same statements.
    """
    turn.status = status
    turn.error = problem
    turn.finished_at = timezone.now()
    turn.save(update_fields=["status", "error", "finished_at"])
    turn_servers.forget_secrets(turn)
    end_event = build_end_event(turn, message_id=message_id)
    event_log.append_events(turn.session_id, *earlier_events, end_event)


def build_end_event(
    turn: Turn, *, message_id: int | None = None
) -> tuple[TurnEndType, TurnEndPayload]:
    """Return the event that ends a closed turn. `message_id` is its answer, if it completed."""
    payload = TurnEndPayload(turn=str(turn.pk))
    if turn.error:
        payload["type"] = turn.error["type"]
        payload["detail"] = turn.error["detail"]
    if message_id is not None:
        payload["message"] = message_id
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


def close_cancelled_turn(turn_id: UUID, recorder: AnswerRecorder | None) -> None:
    """Close a turn whose task was cancelled by the user, or because the process stops."""
    is_user_cancel = Turn.objects.filter(pk=turn_id, cancel_requested=True).exists()
    if is_user_cancel:
        _close_turn(turn_id, recorder, Turn.Status.CANCELLED, None)
    else:
        _close_turn(turn_id, recorder, Turn.Status.INTERRUPTED, build_stopped_problem())


def close_failed_turn(
    turn_id: UUID, recorder: AnswerRecorder | None, problem: Mapping[str, object]
) -> None:
    """Close a turn that failed for this reason."""
    logger.warning("turn %s failed: %s: %s", turn_id, problem["type"], problem["detail"])
    _close_turn(turn_id, recorder, Turn.Status.FAILED, problem)


def _close_turn(
    turn_id: UUID,
    recorder: AnswerRecorder | None,
    status: str,
    problem: Mapping[str, object] | None,
) -> None:
    """Store what has arrived of the answer, and the turn's end, in one transaction.

    So nobody can see a turn that is over and a message that streams for ever.
    """
    if recorder and recorder.has_text:
        recorder.describe_request()
    try:
        with recorder.open_transaction() if recorder else _open_transaction(turn_id):
            message_events = recorder.interrupt_message() if recorder else []
            turn = Turn.objects.get(pk=turn_id)
            end_turn(turn, status, problem, earlier_events=message_events)
            transaction.on_commit(partial(count_end, turn, recorder.model if recorder else ""))
    except TurnLost:
        logger.warning("turn %s was closed elsewhere, or deleted with its session", turn_id)


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
    spans.note(attributes, error_type=(turn.error or {}).get("type", "") if is_failure else "")


@contextlib.contextmanager
def _open_transaction(turn_id: UUID) -> Iterator[LockedTurn]:
    with transaction.atomic():
        yield lock_running_turn(turn_id)
