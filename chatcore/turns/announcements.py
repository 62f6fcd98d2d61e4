"""Announce that a turn has stopped, once that is stored."""

from functools import partial
from uuid import UUID

from django.dispatch import Signal

from chatcore.base.threads import RECEIVERS
from chatcore.models import Message, Turn
from chatcore.signals import response_completed, turn_halted


def announce_response(turn: Turn, answer: Message) -> None:
    """Have the last answer of a turn announced, and wait for no receiver."""
    _send(
        response_completed,
        turn.session_id,
        turn_id=turn.pk,
        message_id=answer.pk,
        model=answer.model,
    )


def announce_halt(turn_id: UUID, *, session_id: UUID, status: str) -> None:
    """Have it announced that a turn stopped without a last answer, and wait for no receiver."""
    _send(turn_halted, session_id, turn_id=turn_id, status=status)


def _send(signal: Signal, session_id: UUID, **arguments: object) -> None:
    send = partial(signal.send_robust, Turn, session_id=session_id, **arguments)
    RECEIVERS.submit(session_id, send)
