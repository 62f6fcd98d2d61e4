"""Stop the answer of a turn when the client that asked for it leaves.

To close the connection is the only way in which OpenAI's clients stop an answer. Turns of the REST
API go on without their clients.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar
from uuid import UUID

from chatcore.base.threads import run_in_thread
from chatcore.models import Session, Turn
from chatcore.turns import control

Part = TypeVar("Part")
STOP_SECONDS = 10.0  # to wait for the end of an answer that is being stopped

_stopping_turn_ids: set[UUID] = set()
_stop_tasks: set[asyncio.Task[bool]] = set()  # the event loop holds no reference to its tasks


class ClientWatch:
    """Knows whether the client got the whole answer of a turn, and stops the answer if not."""

    def __init__(self, turn: Turn) -> None:
        self.turn_id = turn.pk
        self._is_over = False

    def finish(self) -> None:
        """Note that nothing more has to be written for this client."""
        self._is_over = True

    def stop_unless_over(self) -> None:
        """Stop the answer if the client has not got all of it. Does not block an event loop."""
        if self._is_over:
            return
        _stopping_turn_ids.add(self.turn_id)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # this is the thread of a view
            _stop_answer(self.turn_id)
            return
        task = loop.create_task(run_in_thread(_stop_answer, self.turn_id))
        _stop_tasks.add(task)
        task.add_done_callback(_stop_tasks.discard)

    async def watch_parts(self, parts: AsyncGenerator[Part]) -> AsyncGenerator[Part]:
        """Yield the parts. Their end and their failure are the end of the answer."""
        try:
            async with aclosing(parts):
                async for part in parts:
                    yield part
        except Exception:
            self.finish()
            raise
        self.finish()


def wait_for_stopped_answer(session: Session) -> None:
    """Wait until an answer of the session whose client has left has ended, so that it can go on.

    Returns after STOP_SECONDS even if it has not.
    """
    running_turns = session.turns.filter(status=Turn.Status.RUNNING)
    for turn_id, is_stopping in running_turns.values_list("pk", "cancel_requested"):
        if is_stopping or turn_id in _stopping_turn_ids:
            with contextlib.suppress(TimeoutError, Turn.DoesNotExist):
                control.wait_for_turn(turn_id, timeout=STOP_SECONDS)


def _stop_answer(turn_id: UUID) -> bool:
    try:
        return control.stop_answer(turn_id)
    finally:
        _stopping_turn_ids.discard(turn_id)
