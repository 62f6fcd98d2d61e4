"""Parameters of which the first ones stand for the others in an ordinary run."""

from collections.abc import Iterable
from typing import Any

import pytest


def mark_others_slow(values: Iterable[Any], *, first: int = 1) -> list[Any]:
    """Return parameters; those after the first ones are tried by `bin/test --slow` only."""
    return mark_other_rows_slow(((value,) for value in values), first=first)


def mark_other_rows_slow(rows: Iterable[tuple[Any, ...]], *, first: int = 1) -> list[Any]:
    """Do the same for rows of several parameters."""
    return [
        pytest.param(*row, marks=() if place < first else pytest.mark.slow)
        for place, row in enumerate(rows)
    ]
