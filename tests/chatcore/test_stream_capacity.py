"""Many streams of one server: no event is lost or repeated, and no stream holds a thread."""

import asyncio
import os
import threading
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from openai import AsyncOpenAI

from chatcore.serving import request_threads
from measure.benchmarks import sse
from measure.benchmarks.load.people import create_people
from measure.benchmarks.load.product import run_provider
from measure.benchmarks.load.stamps import TOKEN_LENGTH
from measure.benchmarks.load.stored_answers import count_differences
from measure.benchmarks.load.stream_readers import COMPLETED, Job
from measure.benchmarks.load.streams import run_readers
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import MODEL, create_key
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

READERS = 100
FEW = 4  # threads that wait for the next request
STREAMS = 16  # a user may have 20, and one that is just beginning counts twice for a moment
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.lasting
@pytest.mark.slow
def test_a_hundred_readers_get_every_event_once_over_three_reconnects(
    live: Live, user: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_threads, "MAX_IDLE_THREADS", FEW)
    # More than there are: who comes back may be faster than the news that the reader had left.
    settings.CHATCORE = {**settings.CHATCORE, "STREAMS_AT_ONCE_PER_USER": 3 * READERS}

    def announce_beside_few_threads(sessions: list[str], each: int) -> float:
        wait_until(lambda: count_request_threads() <= FEW, what="threads to end")
        return sse.announce(sessions, each)

    held = sse.measure(
        live.url,
        os.getpid(),
        user,
        announce_beside_few_threads,
        readers=READERS,
        streams=5,
        each=40,
        stay=0.5,
    )
    assert (held.complete_readers, held.events) == (READERS, 200), held


@pytest.mark.slow
@pytest.mark.heavy
def test_many_answers_at_once_reach_their_readers_without_losing_a_token(live: Live) -> None:
    port = urlsplit(live.url).port or 0
    with run_provider(pace=100) as provider_port:
        people = create_people(f"http://127.0.0.1:{provider_port}/v1", people=12, sessions=1)
        targets = [(f"/api/v1/sessions/{ids[0]}/messages", token) for token, ids in people]
        result = run_readers(
            Job(port=port, targets=targets, content="Count to 80", spread=0, patience=60)
        )
    texts = [answer.text for answer in result.answers]
    assert {answer.outcome for answer in result.answers} == {COMPLETED}
    assert [len(text) for text in texts] == [80 * TOKEN_LENGTH] * 12
    shown = {ids[0]: (token, text) for (token, ids), text in zip(people, texts, strict=True)}
    assert count_differences(port, shown) == 0


def count_request_threads() -> int:
    """Count the threads that Django's requests run in; some wait for the next request."""
    return sum(thread.name.startswith("request") for thread in threading.enumerate())


@pytest.mark.slow
def test_streams_of_the_api_of_openai_hold_no_thread_once_they_have_begun(
    live: Live,
    user: User,
    model: AiModel,
    scripted: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_threads, "MAX_IDLE_THREADS", FEW)
    scripted.default = Reply(
        chunks=["One ", "two."], cut_after=1, hang=True
    )  # for 20 seconds: then a provider counts as silent
    key = create_key(user)

    async def open_stream(client: AsyncOpenAI, place: int, streams: AsyncExitStack) -> None:
        asked = client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Count."}],
            stream=True,
            extra_headers={"X-Session-Id": f"chat {place}"} if place % 2 else {},
        )
        stream = await streams.enter_async_context(await asked)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                return

    async def open_streams() -> None:
        async with AsyncExitStack() as streams:
            client = await streams.enter_async_context(
                AsyncOpenAI(base_url=f"{live.url}/v1", api_key=key, max_retries=0)
            )
            await asyncio.gather(*(open_stream(client, place, streams) for place in range(STREAMS)))
            await asyncio.to_thread(
                wait_until,
                lambda: count_request_threads() <= FEW,
                seconds=15,
                what="their threads to end",
            )

    asyncio.run(open_streams())
