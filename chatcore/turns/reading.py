"""Tell the readers of a session how far the model has read the request of its answer."""

import asyncio
import contextlib
import time

from django.db import transaction

from chatcore.events import log as event_log
from chatcore.events.types import EventType, TurnReadingPayload
from chatcore.models import Turn
from chatcore.turns.durable import run_until_stored
from chatcore.turns.leases import TurnLost, lock_running_turn

TELL_SECONDS = 2.0  # between two events; a shorter reading has none


class ReadingTeller:
    """Appends `turn.reading` to the log while the request of one answer is read.

    It is an event like all others, so every relay and every stream carries it. What a server says
    in between, or while an event is being stored, is left out: an answer's deltas are ten times as
    many.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._told_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def tell(self, read: int, total: int) -> None:
        """Have it stored soon that `read` of `total` tokens are read. For the event loop."""
        now = time.monotonic()
        if now - self._told_at < TELL_SECONDS or (self._task and not self._task.done()):
            return
        self._told_at = now
        payload = TurnReadingPayload(turn=str(self._turn.pk), read=read, total=total)
        self._task = asyncio.create_task(run_until_stored(_store, self._turn, payload))


def _store(turn: Turn, payload: TurnReadingPayload) -> None:
    with contextlib.suppress(TurnLost), transaction.atomic():
        lock_running_turn(turn.pk)
        event_log.append_events(turn.session_id, (EventType.TURN_READING, payload))
