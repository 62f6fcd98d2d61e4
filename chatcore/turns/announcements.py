"""Announce that a turn has stopped, once that is stored."""

from uuid import UUID

from django.dispatch import Signal

from chatcore.base.threads import RECEIVERS, finish
from chatcore.models import Message, Turn
from chatcore.signals import response_completed, turn_halted


async def announce_response(turn: Turn, answer: Message) -> None:
    """Announce the last answer of a turn, and wait for the receivers."""
    await _send(
        response_completed,
        session_id=turn.session_id,
        turn_id=turn.pk,
        message_id=answer.pk,
        model=answer.model,
    )


async def announce_halt(turn_id: UUID, *, session_id: UUID, status: str) -> None:
    """Announce that a turn has stopped without a last answer, and wait for the receivers."""
    await _send(turn_halted, session_id=session_id, turn_id=turn_id, status=status)


async def _send(signal: Signal, **arguments: object) -> None:
    # A stop of the process cancels this task. What is stored is announced all the same.
    await finish(RECEIVERS.run(signal.send_robust, Turn, **arguments))
