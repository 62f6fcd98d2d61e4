"""Many streams of one server: no event is lost or repeated, and no stream holds a thread."""

import asyncio
import os
import threading
from contextlib import AsyncExitStack

import pytest
from django.contrib.auth.models import User
from openai import AsyncOpenAI

from models_registry.models import AiModel
from tests.benchmarks import sse
from tests.conftest import Live
from tests.support.openai_client import MODEL, create_key
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.worker_processes import wait_until

READERS = 100
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_hundred_readers_get_every_event_once_over_three_reconnects(
    live: Live, user: User
) -> None:
    before = threading.active_count()
    held = sse.measure(
        live.url, os.getpid(), user, sse.announce, readers=READERS, streams=5, each=40, stay=0.5
    )
    assert (held.complete_readers, held.events) == (READERS, 200), held
    assert held.threads - before < READERS, "each stream holds a thread"


def threads_of_requests() -> int:
    """Those that Django's requests run in."""
    return sum(thread.name.startswith("ThreadPoolExecutor") for thread in threading.enumerate())


def test_streams_of_the_openai_face_hold_no_thread_once_they_have_begun(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(
        chunks=["One ", "two."], cut_after=1, hang=True
    )  # for 20 seconds: then a provider counts as silent
    key, before = create_key(user), threads_of_requests()

    async def held(client: AsyncOpenAI, place: int, streams: AsyncExitStack) -> None:
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

    async def all_held() -> None:
        async with AsyncExitStack() as streams:
            client = await streams.enter_async_context(
                AsyncOpenAI(base_url=f"{live.url}/v1", api_key=key, max_retries=0)
            )
            await asyncio.gather(*(held(client, place, streams) for place in range(20)))
            await asyncio.to_thread(
                wait_until,
                lambda: threads_of_requests() <= before,
                seconds=15,
                what="their threads to end",
            )

    asyncio.run(all_held())
