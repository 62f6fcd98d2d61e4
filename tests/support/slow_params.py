"""Parameters of which the first ones stand for the others in an ordinary run."""

from collections.abc import Iterable
from typing import Any

import pytest


def mark_others_slow(values: Iterable[Any], *, first: int = 1) -> list[Any]:
    """Return parameters; those after the first ones are tried by `bin/test --slow` only."""
    return [
        value if place < first else pytest.param(value, marks=pytest.mark.slow)
        for place, value in enumerate(values)
    ]
