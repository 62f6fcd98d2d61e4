"""Measure many event readers of one server process: memory, threads, and that no event is lost.

The command is `python -m measure.benchmarks sse`.
"""

import asyncio
import contextlib
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connections
from knox.models import AuthToken

from chatcore.models import Session
from measure.benchmarks.load.process_usage import read_memory, read_thread_count
from measure.benchmarks.serving import build_environment, run_server
from tests.support.events import append_events

READERS = 1_000
STREAMS = 50
RECONNECTS = 3
EVENTS = 200  # in each stream: ten seconds at RATE
RATE = 20  # events a second
QUIET = 3.0  # seconds that a reader of a quiet session stays before it reconnects
Announce = Callable[[list[str], int], float]
BEHIND = 120.0  # seconds after the last event; an event that comes later counts as lost


@dataclass
class Reader:
    """One client and the events that it received over all its connections."""

    session: UUID
    event_count: int
    seen: list[int] = field(default_factory=list)
    has_ended: bool = False

    async def follow(self, url: str, token: str, start: asyncio.Barrier | None) -> None:
        """Read to the last event, and reconnect RECONNECTS times on the way."""
        ends = [self.event_count * part // (RECONNECTS + 1) for part in range(1, RECONNECTS + 2)]
        for turn, end in enumerate(ends):
            async with _connect(
                url, token, self.session, after=self.seen[-1] if self.seen else 0
            ) as seqs:
                if not turn and start:
                    await start.wait()
                while len(self.seen) < end:
                    self.seen.append(await anext(seqs))
        self.has_ended = True

    async def hold(self, url: str, token: str, start: asyncio.Barrier, stay: float) -> None:
        """Read a quiet session for `stay` seconds, and reconnect as often."""
        for turn in range(RECONNECTS + 1):
            async with _connect(url, token, self.session, after=0) as seqs:
                if not turn:
                    await start.wait()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(stay):
                        self.seen.append(await anext(seqs))
        self.has_ended = True

    @property
    def is_complete(self) -> bool:
        """Return True if every event came once and in order."""
        return self.has_ended and self.seen == list(range(1, self.event_count + 1))


@asynccontextmanager
async def _connect(
    url: str, token: str, session: UUID, *, after: int
) -> AsyncIterator[AsyncIterator[int]]:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = (
        f"GET /api/v1/sessions/{session}/events HTTP/1.1\r\n"
        f"Host: {place.netloc}\r\n"
        f"Authorization: Bearer {token}\r\n"
        f"Last-Event-ID: {after}\r\n\r\n"
    )
    writer.write(head.encode())
    status = await reader.readline()
    assert b" 200 " in status, status
    while b": open" not in await reader.readline():
        pass
    try:
        yield _read_seqs(reader)
    finally:
        writer.transport.abort()


async def _read_seqs(reader: asyncio.StreamReader) -> AsyncIterator[int]:
    while line := await reader.readline():
        if line.startswith(b"id: "):
            yield int(line[4:])
    raise ConnectionError("the server hung up")


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The result of a run: `complete_readers` got every event once; memory is in MB."""

    readers: int
    complete_readers: int
    events: int
    rate: float
    idle_memory: float
    memory: float
    threads: int

    def __str__(self) -> str:
        each = (self.memory - self.idle_memory) * 1024 / self.readers
        return (
            f"{self.complete_readers} of {self.readers} readers got every event once: "
            f"{self.events} events at {self.rate:.0f}/s, over {RECONNECTS} reconnects each. "
            f"{self.memory:.0f} MB, {self.idle_memory:.0f} MB of them without readers "
            f"({each:.0f} KB a reader), {self.threads} threads."
        )


def measure(
    url: str,
    pid: int,
    owner: User,
    announce: Announce,
    *,
    readers: int,
    streams: int,
    each: int,
    stay: float = QUIET,
) -> Capacity:
    """Connect `readers`; `streams` of them get `each` events while they disconnect and return."""
    sessions = [Session.objects.create(owner=owner) for _ in range(readers)]
    _, token = AuthToken.objects.create(owner)
    idle = read_memory(pid)
    clients = [
        Reader(session.pk, each if place < streams else 0) for place, session in enumerate(sessions)
    ]
    seconds, memory, threads = asyncio.run(_run(url, token, clients, pid, announce, stay))
    event_total = streams * each
    complete_readers = sum(client.is_complete for client in clients)
    return Capacity(
        readers=readers,
        complete_readers=complete_readers,
        events=event_total,
        rate=event_total / seconds,
        idle_memory=idle,
        memory=memory,
        threads=threads,
    )


async def _run(
    url: str, token: str, clients: list[Reader], pid: int, announce: Announce, stay: float
) -> tuple[float, float, int]:
    """Return the seconds that the events took, and the memory and threads of the process then."""
    start = asyncio.Barrier(len(clients) + 1)
    busy = [client for client in clients if client.event_count]
    quiet = [
        asyncio.create_task(client.hold(url, token, start, stay))
        for client in clients
        if not client.event_count
    ]
    reading = [asyncio.create_task(client.follow(url, token, start)) for client in busy]
    await asyncio.wait_for(start.wait(), BEHIND)
    memory = read_memory(pid)
    seconds = await asyncio.to_thread(
        announce, [str(client.session) for client in busy], busy[0].event_count
    )
    memory, threads = max(memory, read_memory(pid)), read_thread_count(pid)
    await asyncio.wait((*reading, *quiet), timeout=BEHIND)
    for task in (*quiet, *reading):
        task.cancel()
    for error in await asyncio.gather(*quiet, *reading, return_exceptions=True):
        if error is not None:
            print(f"a reader failed: {error!r}", file=sys.stderr)
    return seconds, memory, threads


def announce_from_another_process(sessions: list[str], each: int) -> float:
    """Announce from a process of its own, because the readers keep this one busy."""
    program = (
        "import django; django.setup(); from measure.benchmarks import sse; "
        f"print(sse.announce({sessions}, {each}))"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        env=build_environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    return float(process.stdout.split()[-1])


def announce(sessions: list[str], each: int) -> float:
    """Append events to each session, RATE a second, and return the seconds that it took."""
    start = time.monotonic()
    try:
        for number in range(each):
            for session in sessions:
                append_events(UUID(session), ("session.updated", {"fields": [str(number)]}))
            time.sleep(max(0.0, start + (number + 1) / RATE - time.monotonic()))
    finally:
        connections.close_all()
    return time.monotonic() - start


def main() -> int:
    """Print the result and return 1 if an event was lost or came twice."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8 * READERS)), hard))
    owner = User.objects.create_user("reader")
    counts = {"readers": READERS, "streams": STREAMS, "each": EVENTS}
    with run_server() as (url, pid):
        capacity = measure(url, pid, owner, announce_from_another_process, **counts)
    print(capacity)
    return 0 if capacity.complete_readers == capacity.readers else 1
