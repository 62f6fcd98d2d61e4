"""`chatcore policies`: the compaction policies side by side, in tokens of one window."""

import json
import shutil
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from compaction import policies
from compaction.core.budget import Budget, plan
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS

WINDOW = 200_000


class Command(BaseCommand):
    help = "Show every compaction policy: its budget, where it acts, what it protects and which stages it runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--window",
            type=_tokens,
            default=WINDOW,
            help="Context window in tokens; 200,000 unless given.",
        )
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="One JSON document."
        )

    def handle(self, *args: Any, window: int, as_json: bool, **options: Any) -> None:
        """Print the table, or the same as JSON."""
        found = [_figures(name, policy, plan(policy, window)) for name, policy in _known().items()]
        if as_json:
            self.stdout.write(json.dumps({"window": window, "policies": found}, indent=2))
        elif self.stdout.isatty():
            Console(width=shutil.get_terminal_size().columns).print(_table(window, found))
        else:
            self.stdout.write("\n".join(_lines(found)))


def _known() -> dict[str, Policy]:
    """The presets alone where there is no database yet."""
    try:
        return policies.available()
    except DatabaseError:
        return PRESETS


def _tokens(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdecimal() or int(digits) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of tokens above zero")
    return int(digits)


def _figures(name: str, policy: Policy, budget: Budget | None) -> dict[str, Any]:
    assert budget is not None  # a window is given
    return {
        "policy": name,
        "input_tokens": budget.input,
        "threshold_tokens": budget.threshold,
        "triggers_at": budget.first_over,
        "target_tokens": budget.target,
        "protected": _protected(policy, budget),
        "stages": list(policy.stages),
        "phases": list(policy.trigger.phases),
    }


def _protected(policy: Policy, budget: Budget) -> str:
    """The tail that stays, in words."""
    knobs = policy.protect
    tails = {
        "token_ratio": f"newest {budget.protected:,} tokens",
        "count": f"last {knobs.count}",
        "count_ratio": f"newest {knobs.ratio:.0%} of messages, at least {knobs.minimum}",
        "per_role": f"last {knobs.count} of each role",
        "user_turns": f"last {knobs.count} user turns",
    }
    return tails[knobs.kind] + (f", first {knobs.first}" if knobs.first else "")


HEADS = ("policy", "budget", "threshold", "acts at", "protected tail", "stages")


def _cells(figures: dict[str, Any], between: str = " → ") -> tuple[str, ...]:
    numbers = (f"{figures[name]:,}" for name in ("input_tokens", "threshold_tokens", "triggers_at"))
    return (figures["policy"], *numbers, figures["protected"], between.join(figures["stages"]))


def _table(window: int, found: list[dict[str, Any]]) -> Table:
    """Narrow enough for 80 columns: a stage a line."""
    table = Table(
        title=f"Compaction policies in a window of {window:,} tokens",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for place, head in enumerate(HEADS):
        table.add_column(head, justify="right" if 0 < place < 4 else "left", no_wrap=place != 4)
    for figures in found:
        table.add_row(*_cells(figures, between="\n"), end_section=True)
    return table


def _lines(found: list[dict[str, Any]]) -> list[str]:
    rows = [HEADS, *(_cells(figures) for figures in found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
