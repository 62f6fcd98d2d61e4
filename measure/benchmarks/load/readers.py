"""Measure thousands of readers of event streams on one web process.

The command is `python -m measure.benchmarks readers [--sqlite | --postgres]`. First many readers of
sessions in which nothing happens: what each costs. Then fewer readers, and another process that
announces events into some of their sessions: whether every event comes once, and how late.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from measure.benchmarks.load.event_readers import Connection, Delivery, Job
from measure.benchmarks.load.process_usage import UsageSampler, read_memory, read_thread_count
from measure.benchmarks.load.product import (
    Product,
    add_common_options,
    apply_common_options,
    run_product,
    run_provider,
)

IDLE_READERS = 5_000
IDLE_SECONDS = 10.0
SETTLE_SECONDS = 2.0
READERS = 1_000
STREAMS = 50
RATE = 20  # events a second in each stream
EVENTS = 200  # in each stream: ten seconds
BEHIND = 60.0  # seconds after the last event; an event that comes later counts as lost
GOAL_RATE = STREAMS * RATE


@dataclass(frozen=True, kw_only=True)
class IdleResult:
    """What readers cost that wait for events: memory in MB, processor time as a share of a core."""

    readers: int
    connection: Connection
    memory_before: float
    memory: float
    cores: float
    threads: int
    complete_readers: int

    def __str__(self) -> str:
        each = (self.memory - self.memory_before) * 1024 / max(1, self.connection.connected)
        return (
            f"{self.connection.connected:,} of {self.readers:,} idle readers connected in"
            f" {self.connection.seconds:.0f} s, {self.complete_readers:,} stayed: "
            f"{self.memory_before:.0f} MB without them, {self.memory:.0f} MB with them,"
            f" {each:.1f} KB each; {self.cores:.1%} of a core, {self.threads} threads."
            + _format_refusals(self.connection)
        )

    @property
    def is_whole(self) -> bool:
        """Return True if all readers were connected to the end."""
        return self.complete_readers == self.readers


@dataclass(frozen=True, kw_only=True)
class BusyResult:
    """What readers were told: `rate` events a second, from the first event to the last."""

    readers: int
    connection: Connection
    delivery: Delivery
    announced_rate: float
    rate: float
    cores: float
    memory: float

    def __str__(self) -> str:
        told = self.delivery
        return (
            f"{told.complete_readers:,} of {self.readers:,} readers got every event once: "
            f"{told.events:,} events, announced at {self.announced_rate:,.0f}/s and told at"
            f" {self.rate:,.0f}/s; late p50 {told.lateness_p50:.0f} ms, p95"
            f" {told.lateness_p95:.0f} ms, worst {told.lateness_max:.0f} ms;"
            f" {self.cores:.0%} of a core, {self.cores / max(1, self.rate) * 1e6:.0f} µs an event,"
            f" {self.memory:.0f} MB." + _format_refusals(self.connection)
        )

    @property
    def is_whole(self) -> bool:
        """Return True if every event was told once, at nine tenths of the pace at least."""
        return self.delivery.complete_readers == self.readers and self.rate > 0.9 * GOAL_RATE


def _format_refusals(connection: Connection) -> str:
    return f" Not connected: {connection.refusals}." if connection.refusals else ""


class ReaderProcess:
    """The running program of the readers."""

    def __init__(self, process: "subprocess.Popen[str]", connection: Connection) -> None:
        self._process = process
        self.connection = connection

    def collect_events(self, seconds: float) -> Delivery:
        """Wait until every reader has its events, at most so many seconds."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return Delivery(**json.loads(self._process.stdout.readline()))


@contextmanager
def connect_readers(
    product: Product, sessions: Sequence[tuple[str, str, int]]
) -> Iterator[ReaderProcess]:
    """Connect a reader for each `(session, token, number of events)`, in a process of its own."""
    targets = [(f"/api/v1/sessions/{pk}/events", token, count) for pk, token, count in sessions]
    process = subprocess.Popen(
        [sys.executable, "-m", "measure.benchmarks.load.event_readers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(json.dumps(asdict(Job(port=product.port, targets=targets))) + "\n")
        process.stdin.flush()
        yield ReaderProcess(process, Connection(**json.loads(process.stdout.readline())))
    finally:
        process.kill()
        process.communicate()


def measure_idle(product: Product, number: int, place: int) -> IdleResult:
    """Connect readers of sessions in which nothing happens."""
    sessions = [(person.sessions[place], person.token, 0) for person in product.people[:number]]
    with connect_readers(product, sessions[:1]):
        time.sleep(1)
        memory_before = read_memory(product.pid)
    # As many streams as a process takes are connected now, so those before must be gone.
    time.sleep(SETTLE_SECONDS)
    with connect_readers(product, sessions) as readers, UsageSampler(product.pid) as sampler:
        time.sleep(SETTLE_SECONDS)
        start = time.monotonic()
        time.sleep(IDLE_SECONDS)
        end = time.monotonic()
        return IdleResult(
            readers=number,
            connection=readers.connection,
            memory_before=memory_before,
            memory=read_memory(product.pid),
            cores=sampler.count_process_seconds(start, end) / (end - start),
            threads=read_thread_count(product.pid),
            complete_readers=readers.collect_events(0).complete_readers,
        )


def measure_busy(product: Product, number: int, place: int) -> BusyResult:
    """Connect readers, and announce events to the first STREAMS of them."""
    people = product.people[:number]
    counts = [EVENTS] * STREAMS + [0] * (number - STREAMS)
    sessions = [
        (person.sessions[place], person.token, count)
        for person, count in zip(people, counts, strict=True)
    ]
    with connect_readers(product, sessions) as readers, UsageSampler(product.pid) as sampler:
        seconds = _announce(product, [session for session, _, count in sessions if count])
        told = readers.collect_events(BEHIND)
        told_seconds = max(1e-3, told.end - told.start)
        return BusyResult(
            readers=number,
            connection=readers.connection,
            delivery=told,
            announced_rate=STREAMS * EVENTS / seconds,
            rate=told.events / told_seconds,
            cores=sampler.count_process_seconds(told.start, told.end) / told_seconds,
            memory=read_memory(product.pid),
        )


def _announce(product: Product, sessions: list[str]) -> float:
    """Announce from another process, and return the seconds that it took."""
    output = subprocess.run(
        [sys.executable, "-m", "measure.benchmarks.load.announcer"],
        input=json.dumps({"sessions": sessions, "each": EVENTS, "rate": RATE}) + "\n",
        env=product.environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    return float(output.split()[-1])


def raise_file_limit() -> None:
    """Let this process and its children open as many files as the machine allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(arguments: Sequence[str]) -> int:
    """Print the results, and return 1 if a reader or an event was lost."""
    parser = argparse.ArgumentParser(prog="python -m measure.benchmarks readers")
    parser.add_argument("--idle", type=int, default=IDLE_READERS, help="idle readers")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    raise_file_limit()
    is_whole = True
    for name, url in apply_common_options(options).items():
        with (
            run_provider(1) as provider_port,
            run_product(
                provider_port, postgres_url=url, people=max(options.idle, READERS), sessions=2
            ) as product,
        ):
            busy = measure_busy(product, READERS, place=0)
            print(f"{name}: {busy}", flush=True)
            idle = measure_idle(product, options.idle, place=1)
            print(f"{name}: {idle}", flush=True)
        is_whole = is_whole and busy.is_whole and idle.is_whole
    return 0 if is_whole else 1
