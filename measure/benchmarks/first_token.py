"""Measure how long the first word of an answer takes from the provider to the event log."""

import asyncio
import http.client
import json
import statistics
import time
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import UUID

from chatcore.events import log as event_log
from chatcore.models import Session
from chatcore.turns import control
from measure.benchmarks.timing import Row
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

TIMES = 15


def measure_rows(scripted: ScriptedModel, session: Session) -> Iterator[Row]:
    """Compare the first word through Chatcore with a bare HTTP client, measured in turns."""
    scripted.default = Reply(chunks=["Hello", " there", "."], chunk_delay=0.005)
    with asyncio.Runner() as reader:
        pairs = [
            (_measure_bare_client(scripted), _measure_chatcore(session, reader))
            for _ in range(TIMES + 2)
        ][2:]
    bare, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    yield Row(
        name="first word, over the provider's own",
        value=ours - bare,
        limit=50,
        note=f"{ours:.1f} ms, bare HTTP {bare:.1f} ms",
    )


def _measure_bare_client(scripted: ScriptedModel) -> float:
    body = json.dumps(
        {"model": "test-model", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    )
    place = urlsplit(scripted.base_url)
    start = time.perf_counter()
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    connection.request(
        "POST", f"{place.path}/chat/completions", body, {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    while b"Hello" not in answer.readline():
        pass
    elapsed = time.perf_counter() - start
    connection.close()
    return elapsed * 1000


def _measure_chatcore(session: Session, reader: asyncio.Runner) -> float:
    """Measure from the user's message to the model's first word in the event log, in ms."""
    start = time.perf_counter()
    turn = control.start_turn(session, content="Hi")
    reader.run(_wait_for_first_word(session.pk, turn.first_event_seq))
    elapsed = time.perf_counter() - start
    turn_after = control.wait_for_turn(turn.pk, 10)
    assert turn_after.status == "completed", turn_after.error
    return elapsed * 1000


async def _wait_for_first_word(session_id: UUID, after: int) -> None:
    async for event in event_log.follow_events(session_id, after):
        assert event is None or event.name != "turn.failed", event
        if event and event.name == "message.delta":
            return
