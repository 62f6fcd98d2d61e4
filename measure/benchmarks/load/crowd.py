"""Measure more people at once than a process can answer: what is taken ends well.

The command is `python -m measure.benchmarks crowd [--sqlite | --postgres] [number]`. Who is not
answered has to be refused in words, with the time to come back; nothing that was shown may be lost,
nothing of a refused message may be stored, and memory has to come back. The crowd comes twice: what
the second one leaves in memory beyond the first would grow for ever.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from measure.benchmarks.load import stored_answers
from measure.benchmarks.load.process_usage import read_memory
from measure.benchmarks.load.product import (
    Person,
    Product,
    add_common_options,
    apply_common_options,
    run_product,
    run_provider,
)
from measure.benchmarks.load.readers import raise_file_limit
from measure.benchmarks.load.stream_readers import COMPLETED, Answer
from measure.benchmarks.load.streams import PACE, Run, measure_answers, warm_up

PEOPLE = 400
TOKENS = 600
REST_SECONDS = 15.0  # after a crowd, before memory is read
MEMORY_GROWTH = 1.1
REFUSED = "refused in words"
REFUSAL_STATUSES = ("status 429", "status 503")


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """How a crowd fared. Memory is in MB: before it, in the middle, and some seconds after it.

    `outcomes` counts COMPLETED, REFUSED and whatever else happened. `lost_answers` differ from what
    was shown, and `stored_refusals` are sessions in which a refused message was stored after all.
    """

    run: Run
    outcomes: Counter[str]
    lost_answers: int
    stored_refusals: int
    memory_before: float
    memory_after: float

    def __str__(self) -> str:
        result = self.run.result
        others = {
            outcome: count
            for outcome, count in self.outcomes.items()
            if outcome not in (COMPLETED, REFUSED)
        }
        return (
            f"{len(result.answers)} at once: {self.outcomes[COMPLETED]} ended well,"
            f" {self.outcomes[REFUSED]} {REFUSED}, others: {others or 'none'}. "
            f"{self.lost_answers} answers stored differently from what was shown,"
            f" {self.stored_refusals} refused messages stored. "
            f"Tokens late p50 {result.lateness_p50:,.0f} ms, p95 {result.lateness_p95:,.0f} ms;"
            f" {result.end - result.start:.0f} s. Memory {self.memory_before:.0f} MB before,"
            f" {self.run.memory:.0f} in the middle, {self.memory_after:.0f} after."
        )

    @property
    def is_whole(self) -> bool:
        """Return True if every answer ended well or was refused, and nothing is lost."""
        return (
            not self.lost_answers
            and not self.stored_refusals
            and set(self.outcomes) <= {COMPLETED, REFUSED}
        )


def describe_outcome(answer: Answer) -> str:
    """Return COMPLETED, REFUSED, or what else happened.

    A refusal has the status 429 or 503, the seconds to wait, and a problem with a detail in words.
    """
    if answer.outcome not in REFUSAL_STATUSES:
        return f"{answer.outcome}: {answer.detail[:200]}" if answer.detail else answer.outcome
    try:
        detail = json.loads(answer.detail)["detail"]
    except (ValueError, KeyError):
        return f"{answer.outcome} without a problem: {answer.detail[:200]}"
    if not detail or not (answer.retry_after or "").isdigit():
        return f"{answer.outcome} without Retry-After or words"
    return REFUSED


def measure_crowd(product: Product, place: int) -> Crowd:
    """Let everybody send a message at once, each in the session at this place of the person's."""
    memory_before = read_memory(product.pid)
    people = product.people
    targets = [
        (f"/api/v1/sessions/{person.sessions[place]}/messages", person.token) for person in people
    ]
    run = measure_answers(product.pid, product.port, targets, tokens=TOKENS, spread=0)
    time.sleep(REST_SECONDS)
    memory_after = read_memory(product.pid)
    pairs = list(zip(people, run.result.answers, strict=True))
    return Crowd(
        run=run,
        outcomes=Counter(describe_outcome(answer) for _, answer in pairs),
        lost_answers=stored_answers.count_differences(
            product.port,
            {person.sessions[place]: (person.token, answer.text) for person, answer in pairs},
        ),
        stored_refusals=_count_stored_refusals(product, pairs, place),
        memory_before=memory_before,
        memory_after=memory_after,
    )


def _count_stored_refusals(
    product: Product, pairs: Sequence[tuple[Person, Answer]], place: int
) -> int:
    return sum(
        bool(stored_answers.list_messages(product.port, person.sessions[place], person.token))
        for person, answer in pairs
        if describe_outcome(answer) == REFUSED
    )


def measure_database(name: str, postgres_url: str | None, number: int) -> Iterator[bool]:
    """Print two crowds, and yield whether each goal is met."""
    with (
        run_provider(PACE) as provider_port,
        run_product(provider_port, postgres_url=postgres_url, people=number, sessions=3) as product,
    ):
        crowds: list[Crowd] = []
        # The first answer of a process loads the SDK, which no crowd gives back.
        warm_up(product)
        for place in (1, 2):
            crowds.append(measure_crowd(product, place))
            print(f"{name}, {crowds[-1]}", flush=True)
            yield crowds[-1].is_whole
    growth = crowds[1].memory_after / crowds[0].memory_after
    print(f"{name}: after the second crowd {growth:.2f} × the memory after the first", flush=True)
    yield growth < MEMORY_GROWTH


def main(arguments: Sequence[str]) -> int:
    """Print how the crowds fared, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m measure.benchmarks crowd")
    parser.add_argument("number", nargs="?", type=int, default=PEOPLE, help="people at once")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    raise_file_limit()
    goals = [
        is_met
        for name, url in apply_common_options(options).items()
        for is_met in measure_database(name, url, options.number)
    ]
    return 0 if goals and all(goals) else 1
