"""Measure many answers that stream at once: how late each token is, and what it costs.

The command is `python -m measure.benchmarks streams [--sqlite | --postgres] [numbers…]`. Provider,
web process and readers are processes of their own, and the readers are on raw sockets, because all
of them share the machine.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from measure.benchmarks.load import stored_answers
from measure.benchmarks.load.process_usage import UsageSampler, read_memory, wait_for_rest
from measure.benchmarks.load.product import (
    Product,
    add_common_options,
    apply_common_options,
    run_product,
    run_provider,
    run_web_server,
)
from measure.benchmarks.load.stamps import TOKEN_LENGTH
from measure.benchmarks.load.stream_readers import COMPLETED, Answer, Job, Result

PACE = 50  # tokens a second in each answer
TOKENS = 600  # in each answer: twelve seconds
WARM_UP_PEOPLE, WARM_UP_TOKENS = 2, 25
PATIENCE = 90.0  # seconds after which an answer counts as not finished
# Streams at once; the last one is the goal.
NUMBERS = {"SQLite": (1, 10, 25, 50, 100), "PostgreSQL": (1, 10, 25, 50, 100, 200)}
RELAY_NUMBERS = (1, 50, 100)
RELAY_COMMAND = (
    *(sys.executable, "-m", "uvicorn", "measure.benchmarks.load.bare_relay:application"),
    *("--port", "PORT", "--loop", "uvloop", "--no-access-log", "--log-level", "warning"),
)
COLUMNS = (
    *("streams", "late p50", "p95", "worst", "finished", "wall", "CPU a token", "in the middle"),
    *("of a core", "memory", "others' CPU", "differ"),
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One line of the table. Times are in seconds, costs in microseconds, memory in MB.

    `middle_cost` is the processor time of a token while all streams run, without the beginnings and
    ends of the turns; 0 if they never all ran at once. `others_cores` are cores that were busy with
    something else than the web process.
    """

    result: Result
    token_cost: float
    middle_cost: float
    cores: float
    memory: float
    others_cores: float
    different_texts: int | None = None

    @property
    def finished_count(self) -> int:
        """Return how many answers were completed."""
        return sum(answer.outcome == COMPLETED for answer in self.result.answers)

    def format_cells(self) -> list[str]:
        """Return the cells of the line, in the order of COLUMNS."""
        result = self.result
        return [
            str(len(result.answers)),
            f"{result.lateness_p50:,.0f} ms",
            f"{result.lateness_p95:,.0f} ms",
            f"{result.lateness_max:,.0f} ms",
            str(self.finished_count),
            f"{result.end - result.start:.1f} s",
            f"{self.token_cost:,.0f} µs",
            f"{self.middle_cost:,.0f} µs",
            f"{self.cores:.0%}",
            f"{self.memory:.0f} MB",
            f"{self.others_cores:.2f} cores",
            "" if self.different_texts is None else str(self.different_texts),
        ]


def measure_answers(
    pid: int, port: int, targets: Sequence[tuple[str, str]], *, tokens: int, spread: float
) -> Run:
    """Let one reader send a request for each `(path, token)`, and measure the web process `pid`."""
    job = Job(
        port=port,
        targets=list(targets),
        content=f"Count to {tokens}",
        spread=spread,
        patience=PATIENCE,
    )
    memory: list[float] = []
    reading = threading.Timer(tokens / PACE / 2, lambda: memory.append(read_memory(pid)))
    with UsageSampler(pid) as sampler:
        time.sleep(0.2)
        reading.start()
        result = run_readers(job)
        time.sleep(0.2)
        reading.join()
    return _build_run(result, sampler, memory[0])


def run_readers(job: Job) -> Result:
    """Run the readers in a process of their own."""
    output = subprocess.run(
        [sys.executable, "-m", "measure.benchmarks.load.stream_readers"],
        input=json.dumps(asdict(job)),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    try:
        values = json.loads(output)
    except ValueError as error:
        shown = f"{output[:300]!r} … {output[-300:]!r}"
        raise RuntimeError(f"The readers printed {len(output)} characters: {shown}") from error
    answers = [Answer(**fields) for fields in values.pop("answers")]
    return Result(**values, answers=answers)


def _build_run(result: Result, sampler: UsageSampler, memory: float) -> Run:
    seconds = result.end - result.start
    process_seconds = sampler.count_process_seconds(result.start, result.end)
    machine_seconds = sampler.count_machine_seconds(result.start, result.end)
    token_count = sum(len(answer.text) for answer in result.answers) / TOKEN_LENGTH
    # All run from the last first token until the first end.
    begin = max(answer.first_token for answer in result.answers)
    end = min(answer.end for answer in result.answers)
    middle_cost = 0.0
    if begin and end - begin > 1:
        middle_tokens = (end - begin) * PACE * len(result.answers)
        middle_cost = sampler.count_process_seconds(begin, end) / middle_tokens * 1e6
    return Run(
        result=result,
        token_cost=process_seconds / max(1.0, token_count) * 1e6,
        middle_cost=middle_cost,
        cores=process_seconds / seconds,
        memory=memory,
        others_cores=(machine_seconds - process_seconds) / seconds,
    )


def measure_product(
    provider_port: int, numbers: Sequence[int], postgres_url: str | None, spread: float
) -> Iterator[Run]:
    """Measure Chatcore with each number of streams."""
    with run_product(
        provider_port,
        postgres_url=postgres_url,
        people=max(numbers),
        sessions=len(numbers) + 1,
    ) as product:
        warm_up(product)
        for place, number in enumerate(numbers, start=1):
            yield _measure_turns(product, number, place=place, tokens=TOKENS, spread=spread)


def warm_up(product: Product) -> None:
    """Let some people have an answer in their first session: the first one loads the SDK."""
    _measure_turns(product, WARM_UP_PEOPLE, place=0, tokens=WARM_UP_TOKENS, spread=0)
    wait_for_rest(product.pid)


def _measure_turns(product: Product, number: int, *, place: int, tokens: int, spread: float) -> Run:
    """Measure the answers of so many people, each in the session at this place of the person's."""
    people = product.people[:number]
    targets = [
        (f"/api/v1/sessions/{person.sessions[place]}/messages", person.token) for person in people
    ]
    run = measure_answers(product.pid, product.port, targets, tokens=tokens, spread=spread)
    shown = {
        person.sessions[place]: (person.token, answer.text)
        for person, answer in zip(people, run.result.answers, strict=True)
    }
    differences = stored_answers.count_differences(product.port, shown)
    return Run(**(vars(run) | {"different_texts": differences}))


def measure_relay(provider_port: int, numbers: Sequence[int], spread: float) -> Iterator[Run]:
    """Measure the bare relay with each number of streams."""
    environment = {
        **os.environ,
        "BARE_RELAY_UPSTREAM": f"http://127.0.0.1:{provider_port}/v1",
    }
    with run_web_server(list(RELAY_COMMAND), environment) as (port, pid):
        measure_answers(pid, port, [("/relay", "-")], tokens=WARM_UP_TOKENS, spread=0)
        for number in numbers:
            targets = [("/relay", "-")] * number
            yield measure_answers(pid, port, targets, tokens=TOKENS, spread=spread)


def print_runs(title: str, runs: Iterator[Run]) -> list[Run]:
    """Print each line as soon as it is measured, with the outcomes that were not an end."""
    print(f"\n{title}\n" + "  ".join(name.rjust(13) for name in COLUMNS), flush=True)
    finished = []
    for run in runs:
        print("  ".join(cell.rjust(13) for cell in run.format_cells()), flush=True)
        outcomes = Counter(answer.outcome for answer in run.result.answers)
        for outcome, count in outcomes.items():
            if outcome != COMPLETED:
                print(f"              {count} × {outcome}", flush=True)
        finished.append(run)
    return finished


def check_goals(database: str, runs: Sequence[Run], number: int) -> Iterator[tuple[str, bool]]:
    """Yield each goal for this database in words, and whether it is met."""
    by_number = {len(run.result.answers): run for run in runs}
    crowd = by_number.get(number)
    if crowd:
        goal = f"{database}, {number} streams: p95 under 250 ms, all finished, no text differs"
        is_whole = crowd.finished_count == number and not crowd.different_texts
        yield goal, is_whole and crowd.result.lateness_p95 < 250
    for streams, limit in ((50, 150), (1, 600)):
        if streams in by_number:
            cost = by_number[streams].token_cost
            yield f"{database}, {streams} streams: CPU a token ≤ {limit} µs", cost <= limit


def main(arguments: Sequence[str]) -> int:
    """Print the table and the goals, and return 1 if one is missed."""
    parser = argparse.ArgumentParser(prog="python -m measure.benchmarks streams")
    parser.add_argument("numbers", nargs="*", type=int, help="streams at once")
    add_common_options(parser)
    parser.add_argument("--spread", type=float, default=0.0, help="seconds over which they begin")
    options = parser.parse_args(arguments)
    databases = apply_common_options(options)
    goals: list[tuple[str, bool]] = []
    print(f"{TOKENS} tokens in each answer, {PACE} a second.")
    with run_provider(PACE) as port:
        runs = measure_relay(port, options.numbers or RELAY_NUMBERS, options.spread)
        print_runs("Bare Django relay", runs)
        for name, url in databases.items():
            numbers = options.numbers or NUMBERS[name]
            runs = measure_product(port, numbers, url, options.spread)
            goals += check_goals(name, print_runs(f"Chatcore, {name}", runs), NUMBERS[name][-1])
    print()
    for goal, is_met in goals:
        print(f"{'met   ' if is_met else 'MISSED'}  {goal}")
    return 0 if all(is_met for _, is_met in goals) else 1
