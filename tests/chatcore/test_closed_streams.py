"""A stream that is left early is closed with all that it reads from, and not by the collector."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from chatcore.api.event_streams import _stream_after_dropped
from chatcore.base.threads import ThreadPool, run_in_thread
from chatcore.contrib.compat.chat_completions.memory import stream_parts
from chatcore.events.hub import event_hub
from chatcore.events.sse import stream_frames
from chatcore.models import Session, Turn
from tests.support.events import append_events

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "open_stream",
    [
        lambda turn: stream_frames(turn.session_id, 0),
        lambda turn: _stream_after_dropped(turn.session_id, 0),
        lambda turn: stream_parts(turn, 0),
    ],
    ids=["events", "events after dropped ones", "an answer of a session"],
)
async def test_a_closed_stream_of_events_is_watched_no_more(
    session: Session, open_stream: Callable[[Turn], AsyncGenerator[object]]
) -> None:
    turn = Turn(session=session, status=Turn.Status.RUNNING)
    await run_in_thread(
        append_events,
        session.pk,
        ("message.created", {"turn": str(turn.pk), "message": 1}),
        ("message.delta", {"message": 1, "text": "Hi"}),
    )
    stream = open_stream(turn)
    while not event_hub.is_watched(session.pk):
        await anext(stream)
    await stream.aclose()
    assert not event_hub.is_watched(session.pk)


async def test_a_pool_forgets_users_whose_work_is_done() -> None:
    pool, running = ThreadPool("test", 4, at_once=1), []

    def work() -> int:
        running.append(1)
        try:
            return len(running)
        finally:
            running.pop()

    counts = await asyncio.gather(*(pool.run_for("alice", work) for _ in range(5)))
    assert counts == [1] * 5
    await pool.run_for("bob", work)
    [semaphores] = pool._places.values()
    assert list(semaphores) == []
