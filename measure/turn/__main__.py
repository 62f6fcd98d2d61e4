"""Measure turns of Chatcore beside those of the floor: python -m measure.turn [--web N].

One scripted provider of 50 tokens a second in a process of its own, the two builds in alternation,
three rounds, on both databases. Streams of four seconds: answers that failed, the first word, how
late words are, processor time a token, memory. Short turns of twenty people: processor time a
turn, turns a second, statements and writing transactions. Only the ratios of one run count.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import psutil
import psycopg

from measure.benchmarks.load.product import (
    Person,
    add_common_options,
    apply_common_options,
    create_database,
    run_product,
    run_provider,
    run_web_server,
)
from measure.benchmarks.load.stamps import TOKEN_LENGTH
from measure.benchmarks.load.stream_readers import COMPLETED, Job, Result
from measure.benchmarks.load.streams import run_readers

PACE = 50  # tokens a second
TOKENS = 200  # in each stream: four seconds
SHORT_TOKENS = 3
SHORT_TURNS = 5  # of each person, one after another
PEOPLE = 20  # with short turns
ROUNDS = 3
PATIENCE = 60.0  # seconds after which an answer counts as failed
STATEMENTS = "chatcore_database_statement_seconds_count"
METRICS_SECONDS = 6.0  # until all counts of a process are among its metrics


@dataclass(frozen=True, kw_only=True)
class Build:
    """A running web server, and who may use it. `path` is where a session takes a message."""

    pid: int
    port: int
    people: list[Person]
    path: str
    database_url: str


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one round of one build gave; times in milliseconds, memory in MB."""

    failed: int
    first_p50: float
    first_p95: float
    late_p50: float
    late_p95: float
    token_microseconds: float
    memory: float


@dataclass(frozen=True, kw_only=True)
class ShortTurns:
    """What short turns cost; processor time in milliseconds. Transactions only of PostgreSQL."""

    failed: int
    cpu: float
    turns_a_second: float
    statements: float
    transactions: float | None


@contextlib.contextmanager
def run_floor(
    provider_port: int, postgres_url: str | None, *, people: int, sessions: int, web: int
) -> Iterator[Build]:
    """Run the floor over a database of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="floor-") as folder,
        create_database(folder, postgres_url) as url,
    ):
        environment = {
            **os.environ,
            "FLOOR_DATABASE_URL": url,
            "FLOOR_PROVIDER_URL": f"http://127.0.0.1:{provider_port}/v1",
        }
        output = subprocess.run(
            [sys.executable, "-m", "measure.turn.floor", str(people), str(sessions)],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        rows = [Person(token=token, sessions=ids) for token, ids in json.loads(output)["people"]]
        command = [sys.executable, "-m", "uvicorn", "measure.turn.floor:application", "--port"]
        command += ["PORT", "--loop", "uvloop", "--log-level", "warning", "--workers", str(web)]
        with run_web_server(command, environment) as (port, pid):
            yield Build(pid=pid, port=port, people=rows, path="/chats/{}", database_url=url)


@contextlib.contextmanager
def run_chatcore(
    provider_port: int, postgres_url: str | None, *, people: int, sessions: int, web: int
) -> Iterator[Build]:
    """Run Chatcore's web processes over a database of their own."""
    with run_product(
        provider_port, postgres_url=postgres_url, people=people, sessions=sessions, web=web
    ) as product:
        yield Build(
            pid=product.pid,
            port=product.port,
            people=product.people,
            path="/api/v1/sessions/{}/messages",
            database_url=product.environment["CHATCORE_DATABASE_URL"],
        )


BUILDS: dict[str, Callable[..., AbstractContextManager[Build]]] = {
    "Chatcore": run_chatcore,
    "floor": run_floor,
}


def send(build: Build, number: int, session: int, tokens: int) -> Result:
    """Let so many people send a message to one of their sessions, all at once."""
    targets = [
        (build.path.format(person.sessions[session]), person.token)
        for person in build.people[:number]
    ]
    content = f"Count to {tokens}"
    result = run_readers(
        Job(port=build.port, targets=targets, content=content, spread=0, patience=PATIENCE)
    )
    outcomes = Counter((each.outcome, each.detail[:200]) for each in result.answers)
    for (outcome, detail), count in outcomes.items():
        if outcome != COMPLETED:
            print(f"    {build.path}: {count} × {outcome} {detail}", flush=True)
    return result


def read_cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of all below it."""
    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def read_memory(pid: int) -> float:
    """Return the proportional memory of a process and of all below it, in MB."""
    process = psutil.Process(pid)
    sizes = (each.memory_full_info().pss for each in (process, *process.children(recursive=True)))
    return float(sum(sizes)) / 2**20


def measure_streams(build: Build, number: int, session: int) -> Figures:
    """Measure so many streams at once."""
    cpu = read_cpu_seconds(build.pid)
    result = send(build, number, session, TOKENS)
    cpu = read_cpu_seconds(build.pid) - cpu
    firsts = [1_000 * (each.first_token - result.start) for each in result.answers]
    token_count = sum(len(each.text) for each in result.answers) / TOKEN_LENGTH
    return Figures(
        failed=sum(each.outcome != COMPLETED for each in result.answers),
        first_p50=statistics.median(firsts),
        first_p95=max(firsts) if number < 20 else statistics.quantiles(firsts, n=20)[18],
        late_p50=result.lateness_p50,
        late_p95=result.lateness_p95,
        token_microseconds=1e6 * cpu / max(token_count, 1),
        memory=read_memory(build.pid),
    )


def measure_short_turns(build: Build, session: int) -> ShortTurns:
    """Measure short turns of PEOPLE at once, SHORT_TURNS of each."""
    cpu, statements = read_cpu_seconds(build.pid), count_statements(build)
    transactions = count_transactions(build)
    seconds, failed = 0.0, 0
    for _ in range(SHORT_TURNS):
        result = send(build, PEOPLE, session, SHORT_TOKENS)
        seconds += result.end - result.start
        failed += sum(each.outcome != COMPLETED for each in result.answers)
    cpu = read_cpu_seconds(build.pid) - cpu
    turns = PEOPLE * SHORT_TURNS
    time.sleep(METRICS_SECONDS)
    if transactions is not None:
        transactions = (count_transactions(build) or 0) - transactions
    return ShortTurns(
        failed=failed,
        cpu=1_000 * cpu / turns,
        turns_a_second=turns / seconds,
        statements=(count_statements(build) - statements) / turns,
        transactions=None if transactions is None else transactions / turns,
    )


def count_statements(build: Build) -> int:
    """Return the statements of the web processes so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{build.port}/metrics") as response:
        lines = response.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(STATEMENTS))


def count_transactions(build: Build) -> int | None:
    """Return how many transactions have written something; None where SQLite does not count."""
    if not build.database_url.startswith("postgres"):
        return None
    with psycopg.connect(build.database_url.replace("postgres://", "postgresql://")) as server:
        row = server.execute("SELECT txid_snapshot_xmax(txid_current_snapshot())").fetchone()
    assert row
    return int(row[0])


def describe(ours: float, floor: float) -> str:
    """Return both values and their ratio."""
    ratio = f"{ours / floor:.2f}" if floor else "-"
    return f"{ours:,.0f} / {floor:,.0f} = {ratio}"


def print_streams(number: int, rounds: list[dict[str, Figures]]) -> None:
    """Print the medians of all rounds, ours / floor = ratio."""

    def compare(read: Callable[[Figures], float]) -> str:
        values = {name: [read(each[name]) for each in rounds] for name in BUILDS}
        return describe(*(statistics.median(values[name]) for name in BUILDS))

    failed = {name: sum(each[name].failed for each in rounds) for name in BUILDS}
    ratios = [
        each["Chatcore"].token_microseconds / each["floor"].token_microseconds for each in rounds
    ]
    print(f"  {number} streams, failed {failed['Chatcore']} / {failed['floor']}")
    print(f"    first word p50 {compare(lambda f: f.first_p50)} ms", end=", ")
    print(f"p95 {compare(lambda f: f.first_p95)} ms")
    print(f"    words late p50 {compare(lambda f: f.late_p50)} ms", end=", ")
    print(f"p95 {compare(lambda f: f.late_p95)} ms")
    print(f"    CPU a token {compare(lambda f: f.token_microseconds)} µs", end=" ")
    print(f"(rounds {', '.join(f'{ratio:.2f}' for ratio in ratios)})", end=", ")
    print(f"memory {compare(lambda f: f.memory)} MB", flush=True)


def print_short_turns(rounds: list[dict[str, ShortTurns]]) -> None:
    """Print the medians of all rounds, ours / floor = ratio."""

    def compare(read: Callable[[ShortTurns], float]) -> str:
        values = {name: [read(each[name]) for each in rounds] for name in BUILDS}
        return describe(*(statistics.median(values[name]) for name in BUILDS))

    failed = {name: sum(each[name].failed for each in rounds) for name in BUILDS}
    print(f"  short turns of {PEOPLE} people, failed {failed['Chatcore']} / {failed['floor']}")
    print(f"    CPU {compare(lambda t: t.cpu)} ms", end=", ")
    print(f"turns a second {compare(lambda t: t.turns_a_second)}", end=", ")
    print(f"statements {compare(lambda t: t.statements)}", end="")
    if all(each[name].transactions is not None for each in rounds for name in BUILDS):
        print(f", writing transactions {compare(lambda t: t.transactions or 0)}", end="")
    print(flush=True)


def measure_database(
    name: str, postgres_url: str | None, provider_port: int, options: argparse.Namespace
) -> None:
    """Run both builds over this kind of database, and print their figures."""
    numbers: list[int] = options.numbers or [1, 50, 100]
    sessions = 2 + ROUNDS * len(numbers)
    with contextlib.ExitStack() as stack:
        run = partial(
            _run, provider_port, postgres_url, people=max(PEOPLE, *numbers), sessions=sessions
        )
        builds = {each: stack.enter_context(run(each, web=options.web)) for each in BUILDS}
        for build in builds.values():
            send(build, 2, 0, SHORT_TOKENS)  # the first ones load the SDKs
        time.sleep(METRICS_SECONDS)
        print(f"\n{name}, {options.web} web process(es): Chatcore / floor = ratio", flush=True)
        for place, number in enumerate(numbers):
            first_session = 2 + ROUNDS * place
            print_streams(
                number,
                [
                    {
                        each: measure_streams(builds[each], number, first_session + turn)
                        for each in _alternate(turn)
                    }
                    for turn in range(ROUNDS)
                ],
            )
        print_short_turns(
            [
                {each: measure_short_turns(builds[each], 1) for each in _alternate(turn)}
                for turn in range(ROUNDS)
            ]
        )


def _run(
    provider_port: int, postgres_url: str | None, name: str, **options: int
) -> AbstractContextManager[Build]:
    return BUILDS[name](provider_port, postgres_url, **options)


def _alternate(turn: int) -> list[str]:
    return list(BUILDS) if turn % 2 == 0 else list(reversed(BUILDS))


def main() -> int:
    """Print the tables of all databases."""
    parser = argparse.ArgumentParser(prog="python -m measure.turn")
    parser.add_argument("numbers", nargs="*", type=int, help="streams at once")
    parser.add_argument("--web", type=int, default=1, help="web processes of each build")
    add_common_options(parser)
    options = parser.parse_args()
    databases = apply_common_options(options)
    print(f"{PACE} tokens a second, {TOKENS} in each stream; medians of {ROUNDS} rounds.")
    with run_provider(PACE) as provider_port:
        for name, url in databases.items():
            measure_database(name, url, provider_port, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
