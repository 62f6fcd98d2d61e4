"""`chatcore policies`: the compaction policies side by side, in tokens of one context window."""

import json
import shutil
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand
from django.db import DatabaseError

from chatcore.base.extras import has_extra
from compaction import policies
from compaction.core.budget import Budget, plan
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.systems import find_system
from compaction.policies.reference import render_reference, render_system

if TYPE_CHECKING:
    from rich.table import Table

DEFAULT_WINDOW = 200_000
HEADINGS = ("policy", "budget", "threshold", "acts at", "protected tail", "stages")


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyRow:
    """One policy in one window. The fields are the keys of the JSON output; sizes are in tokens."""

    policy: str
    input_tokens: int
    threshold_tokens: int
    triggers_at: int
    target_tokens: int
    protected_tail: str
    stages: list[str]
    phases: list[str]


class Command(BaseCommand):
    help = (
        "Show every compaction policy: its budget, its threshold, its protected tail, its stages."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--window",
            type=_parse_tokens,
            default=DEFAULT_WINDOW,
            help="The context window in tokens. Default: 200,000.",
        )
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="Print one JSON document."
        )
        parser.add_argument(
            "--reference",
            nargs="?",
            const="",
            metavar="SYSTEM",
            help="Print the tables of docs/policies.md instead, or those of a system's README.",
        )

    def handle(
        self, *args: object, window: int, as_json: bool, reference: str | None, **options: object
    ) -> None:
        """Print a table on a terminal, lines of text into a pipe, or what the options ask for."""
        if reference is not None:
            text = render_system(reference) if reference else render_reference()
            self.stdout.write(text, ending="")
            return
        rows = [_build_row(name, policy, window) for name, policy in _load_policies().items()]
        if as_json:
            document = {"window": window, "policies": [asdict(row) for row in rows]}
            self.stdout.write(json.dumps(document, indent=2))
        elif self.stdout.isatty() and has_extra("terminal"):
            from rich.console import Console

            console = Console(width=shutil.get_terminal_size().columns)
            console.print(_build_table(window, rows))
        else:
            self.stdout.write("\n".join(_format_lines(rows)))


def _load_policies() -> dict[str, Policy]:
    """Return all policies, or only the presets where the database has no tables yet."""
    try:
        return policies.list_policies()
    except DatabaseError:
        return PRESETS


def _parse_tokens(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdecimal() or int(digits) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of tokens above zero")
    return int(digits)


def _build_row(name: str, policy: Policy, window: int) -> PolicyRow:
    budget = plan(policy, window)
    assert budget is not None  # only an unknown window has no budget
    return PolicyRow(
        policy=name,
        input_tokens=budget.input,
        threshold_tokens=budget.threshold,
        triggers_at=budget.trigger_tokens,
        target_tokens=budget.target,
        protected_tail=_describe_protected_tail(policy, budget),
        stages=list(policy.stages),
        phases=list(policy.trigger.phases),
    )


def _describe_protected_tail(policy: Policy, budget: Budget) -> str:
    system = find_system(policy)
    text = system.describe_tail(policy) if system else ""
    return text or f"newest {budget.protected_tokens:,} tokens"


def _format_cells(row: PolicyRow, *, separator: str) -> tuple[str, ...]:
    return (
        row.policy,
        f"{row.input_tokens:,}",
        f"{row.threshold_tokens:,}",
        f"{row.triggers_at:,}",
        row.protected_tail,
        separator.join(row.stages),
    )


def _build_table(window: int, rows: list[PolicyRow]) -> "Table":
    """Build a table that fits in 80 columns: each stage has a line of its own."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=f"Compaction policies in a window of {window:,} tokens",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for heading in HEADINGS:
        is_number = heading in ("budget", "threshold", "acts at")
        table.add_column(
            heading,
            justify="right" if is_number else "left",
            no_wrap=heading != "protected tail",
        )
    for row in rows:
        table.add_row(*_format_cells(row, separator="\n"), end_section=True)
    return table


def _format_lines(rows: list[PolicyRow]) -> list[str]:
    cells = [HEADINGS, *(_format_cells(row, separator=" → ") for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for line_cells in cells:
        padded_cells = [cell.ljust(width) for cell, width in zip(line_cells, widths, strict=True)]
        lines.append("  ".join(padded_cells).rstrip())
    return lines
