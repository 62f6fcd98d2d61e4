"""Readers of event streams, thousands of them: a program that is told when to stop.

`python -m measure.benchmarks.load.event_readers` reads a `Job` as one line of JSON from standard
input, connects all readers and prints a `Connection` as one line of JSON. At the next line, the
seconds that it may take, it waits until every reader has its events, and prints a `Delivery`.
"""

import asyncio
import dataclasses
import json
import sys
import time
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Any

import uvloop

from measure.benchmarks.load.raw_client import EventClient, build_request
from measure.benchmarks.load.stamps import measure_lateness
from measure.benchmarks.load.stream_readers import summarize_lateness

CONNECT_AT_ONCE = 32
CONNECT_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Job:
    """The readers: `(path, token, number of events)` for each."""

    port: int
    targets: list[tuple[str, str, int]]


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How many readers are connected, how long that took, and why the others are not."""

    connected: int
    seconds: float
    refusals: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What the readers received. Lateness is in milliseconds.

    `complete_readers` got every event once and in order, and were connected to the end. `start` and
    `end` are the times of the first and the last event, in seconds of the monotonic clock.
    """

    complete_readers: int
    events: int
    start: float
    end: float
    lateness_p50: float
    lateness_p95: float
    lateness_max: float


class EventReader(EventClient):
    """Follows the events of a session, and counts those that come once and in order."""

    # Of all readers:
    lateness = array("l")
    first_event = 0.0
    last_event = 0.0

    def __init__(self, request: bytes, event_count: int) -> None:
        super().__init__(request)
        self.seq = 0
        self.is_broken = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.all_events: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.event_count = event_count

    def open_stream(self) -> None:
        """Note that the server has begun the stream."""
        self.opened.set_result(None)

    def read_event(self, name: bytes, data: bytes, event_id: bytes) -> None:
        """Read one event, whose data has the time at which it was announced."""
        now = time.monotonic()
        self.is_broken = self.is_broken or int(event_id) != self.seq + 1
        self.seq = int(event_id)
        self.lateness.extend(measure_lateness(json.loads(data)["fields"][0]))
        EventReader.first_event = EventReader.first_event or now
        EventReader.last_event = now
        if self.seq == self.event_count:
            self.all_events.set_result(None)

    @property
    def is_complete(self) -> bool:
        """Return True if every event came once and in order, and the stream is still open."""
        return self.seq == self.event_count and not self.is_broken and not self.end.done()


async def connect_readers(job: Job) -> tuple[list[EventReader], Connection]:
    """Connect all readers, some of them at once, and wait until their streams are open."""
    gate = asyncio.Semaphore(CONNECT_AT_ONCE)
    start = time.monotonic()

    async def connect(path: str, token: str, event_count: int) -> EventReader:
        request = build_request("GET", path, token, last_event=0)
        async with gate:
            _, reader = await asyncio.get_running_loop().create_connection(
                lambda: EventReader(request, event_count), "127.0.0.1", job.port
            )
            awaited: list[asyncio.Future[Any]] = [reader.opened, reader.end]
            await asyncio.wait(
                awaited, timeout=CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            return reader

    readers = await asyncio.gather(*(connect(*target) for target in job.targets))
    refusals = Counter(
        reader.end.result() if reader.end.done() else "no answer"
        for reader in readers
        if reader.end.done() or not reader.opened.done()
    )
    connection = Connection(
        connected=len(readers) - refusals.total(),
        seconds=time.monotonic() - start,
        refusals=dict(refusals),
    )
    return readers, connection


async def collect_events(readers: list[EventReader], seconds: float) -> Delivery:
    """Wait until every reader has its events, at most so many seconds."""
    awaited = [reader.all_events for reader in readers if reader.event_count]
    if awaited:
        await asyncio.wait(awaited, timeout=seconds)
    p50, p95, worst = summarize_lateness(EventReader.lateness)
    return Delivery(
        complete_readers=sum(reader.is_complete for reader in readers),
        events=sum(reader.seq for reader in readers),
        start=EventReader.first_event,
        end=EventReader.last_event,
        lateness_p50=p50,
        lateness_p95=p95,
        lateness_max=worst,
    )


async def main() -> None:
    """Connect, wait for the word, and print."""
    job = Job(**json.loads(sys.stdin.readline()))
    readers, connection = await connect_readers(job)
    print(json.dumps(dataclasses.asdict(connection)), flush=True)
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    delivery = await collect_events(readers, float(line))
    print(json.dumps(dataclasses.asdict(delivery)), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
