"""Tables of results, and the size of a measurement."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction.core.presets import PRESETS
from measure.fidelity.stand import EMPTY, FULL
from measure.fidelity.wording import LANGUAGES, Domain, load_domains


@dataclass(frozen=True)
class Scale:
    """How large a measurement is: talks, messages' tokens, facts and questions of each talk."""

    talks: int = 2
    facts: int = 24
    rules: int = 12
    questions: int = 24
    search_tokens: int = 60_000
    cycles: int = 8
    losses: tuple[float, ...] = (0.8,)  # what summarizers of known loss keep
    window: int = 8_192
    rule_tokens: int = 164_000  # of which the window is 5 %
    cases: int = 2
    kinds: int = 100  # of faults and of styles, at most


DEFAULT = Scale()
LARGE = Scale(
    losses=(0.95, 0.8, 0.5),
    talks=8,
    facts=40,
    rules=16,
    questions=60,
    search_tokens=200_000,
    cases=8,
)
SMALL = Scale(
    talks=1,
    facts=6,
    rules=4,
    questions=4,
    search_tokens=6_000,
    cycles=2,
    rule_tokens=8_000,
    cases=1,
    kinds=2,
)


@dataclass(frozen=True)
class Plan:
    """What is measured: the seed, the size and the policies, each a row."""

    seed: int
    scale: Scale = DEFAULT
    policies: Sequence[str] = tuple(PRESETS)
    lists_misses: bool = False  # what did not reach the model, under each table

    @property
    def row_names(self) -> tuple[str, ...]:
        """Return the names of all rows: the two bounds and the policies."""
        return (FULL, EMPTY, *self.policies)

    def make_random(self, *keys: object) -> random.Random:
        """Return numbers that the seed and the keys decide."""
        return random.Random("/".join(map(str, (self.seed, *keys))))

    def choose_domains(self, rng: random.Random, number: int) -> list[Domain]:
        """Return two domains for a talk: English for even numbers and German for odd ones."""
        return rng.sample(load_domains(LANGUAGES[number % len(LANGUAGES)]), 2)


@dataclass
class Table:
    """A title, what it means, the heads of the columns, and a row for each policy."""

    title: str
    note: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add_misses(self, plan: Plan, policy: str, misses: Sequence[str]) -> None:
        """List what a policy lost under the table, if the plan asks for it."""
        if plan.lists_misses and policy in plan.policies:
            self.remarks += [f"- {policy} lost: {miss}" for miss in misses]

    def format(self) -> str:
        """Return the table in Markdown."""
        lines = [f"### {self.title}", "", self.note, "", "| " + " | ".join(self.heads) + " |"]
        lines.append(
            "|" + "|".join("---" if n == 0 else "---:" for n in range(len(self.heads))) + "|"
        )
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        lines += ["", *self.remarks] if self.remarks else []
        return "\n".join(lines)


def format_share(share: float) -> str:
    """Return a share as a percentage with one digit."""
    return f"{share * 100:.1f}"


def average(values: Sequence[float]) -> float:
    """Return the mean; 0 for nothing."""
    return sum(values) / len(values) if values else 0.0
