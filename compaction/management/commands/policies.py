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

DEFAULT_WINDOW = 200_000


class Command(BaseCommand):
    help = "Show every compaction policy: its budget, where it acts, what it protects and which stages it runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--window",
            type=_parse_tokens,
            default=DEFAULT_WINDOW,
            help="Context window in tokens; 200,000 unless given.",
        )
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="One JSON document."
        )

    def handle(self, *args: Any, window: int, as_json: bool, **options: Any) -> None:
        """Print the table, or the same as JSON."""
        policy_rows = [
            _build_policy_row(name, policy, plan(policy, window))
            for name, policy in _load_policies().items()
        ]
        if as_json:
            self.stdout.write(json.dumps({"window": window, "policies": policy_rows}, indent=2))
        elif self.stdout.isatty():
            Console(width=shutil.get_terminal_size().columns).print(
                _build_table(window, policy_rows)
            )
        else:
            self.stdout.write("\n".join(_format_lines(policy_rows)))


def _load_policies() -> dict[str, Policy]:
    """The presets alone where there is no database yet."""
    try:
        return policies.list_policies()
    except DatabaseError:
        return PRESETS


def _parse_tokens(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdecimal() or int(digits) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of tokens above zero")
    return int(digits)


def _build_policy_row(name: str, policy: Policy, budget: Budget | None) -> dict[str, Any]:
    assert budget is not None  # a window is given
    return {
        "policy": name,
        "input_tokens": budget.input,
        "threshold_tokens": budget.threshold,
        "triggers_at": budget.trigger_tokens,
        "target_tokens": budget.target,
        "protected": _describe_protected_tail(policy, budget),
        "stages": list(policy.stages),
        "phases": list(policy.trigger.phases),
    }


def _describe_protected_tail(policy: Policy, budget: Budget) -> str:
    """The tail that stays, in words."""
    knobs = policy.protect
    descriptions = {
        "token_ratio": f"newest {budget.protected_tokens:,} tokens",
        "count": f"last {knobs.count}",
        "count_ratio": f"newest {knobs.ratio:.0%} of messages, at least {knobs.minimum}",
        "per_role": f"last {knobs.count} of each role",
        "user_turns": f"last {knobs.count} user turns",
    }
    return descriptions[knobs.kind] + (f", first {knobs.first}" if knobs.first else "")


HEADINGS = ("policy", "budget", "threshold", "acts at", "protected tail", "stages")


def _format_cells(figures: dict[str, Any], separator: str = " → ") -> tuple[str, ...]:
    numbers = (f"{figures[name]:,}" for name in ("input_tokens", "threshold_tokens", "triggers_at"))
    return (figures["policy"], *numbers, figures["protected"], separator.join(figures["stages"]))


def _build_table(window: int, policy_rows: list[dict[str, Any]]) -> Table:
    """Narrow enough for 80 columns: a stage a line."""
    table = Table(
        title=f"Compaction policies in a window of {window:,} tokens",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column, heading in enumerate(HEADINGS):
        table.add_column(
            heading, justify="right" if 0 < column < 4 else "left", no_wrap=column != 4
        )
    for figures in policy_rows:
        table.add_row(*_format_cells(figures, separator="\n"), end_section=True)
    return table


def _format_lines(policy_rows: list[dict[str, Any]]) -> list[str]:
    rows = [HEADINGS, *(_format_cells(figures) for figures in policy_rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
