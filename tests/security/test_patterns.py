"""No regular expression of the house takes time that grows faster than the text."""

import math
import re
import sys
from collections.abc import Iterator

import pytest

from tests.support.house_patterns import HousePattern, list_patterns
from tests.support.pattern_steps import build_attack, count_steps, list_attacks

LENGTH = 40
MOST_STEPS = 300_000
# A part of at most some hundred characters takes its square of steps in a short text only.
LONG_LENGTH = 320
MOST_LONG_STEPS = 3_000_000
DOUBLED = 3.0  # twice the text: twice the steps if it is linear, four times if it is quadratic
WORST = 4  # attacks of a pattern that are tried with the doubled text too
# What is only applied to a text of this length, or looks only so far.
BOUNDED = {
    "chatcore/providers/overflow.py:_OVERFLOW_REGEXES": "300 characters behind a word of a refusal",
    "chatcore/providers/overflow.py:_TOO_LARGE_FOR_RATE": "400 characters of a refusal",
    "textkit/credentials.py:_ENVIRONMENT_NAME": "a name of at most 100 characters",
    "compaction/memory/core/ledger/recognition.py:_FEELING": "a sentence of at most 400 characters",
    "compaction/memory/core/ledger/values.py:_ORDINARY": "only matched with a whole value",
    "models_registry/reasoning.py:_SNAPSHOT": "a model's name of 128 characters, at one place",
}


@pytest.fixture(autouse=True)
def deep_recursion() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


Attack = tuple[str, str]


def count(item: HousePattern, attack: Attack, length: int, most: int = MOST_STEPS) -> int:
    text = build_attack(attack, length)
    return count_steps(item.pattern, text, anchored=item.is_anchored, most=most)


def measure_growth(item: HousePattern) -> tuple[float, Attack]:
    """Return how many times more steps the worst doubled text takes, and what it repeats."""
    attacks = list_attacks(item.pattern)
    steps = {attack: count(item, attack, LENGTH) for attack in attacks}
    if MOST_STEPS in steps.values():
        return math.inf, max(attacks, key=lambda attack: steps[attack])
    worst_attacks = sorted(attacks, key=lambda attack: -steps[attack])[:WORST]
    return max((count(item, each, 2 * LENGTH) / steps[each], each) for each in worst_attacks)


def grows_in_long_texts(item: HousePattern, attack: Attack) -> bool:
    """Return whether a doubled text takes more than twice the steps where the text is long."""
    short, long = (
        count(item, attack, length, MOST_LONG_STEPS) for length in (LONG_LENGTH, 2 * LONG_LENGTH)
    )
    return long == MOST_LONG_STEPS or long / short > DOUBLED


@pytest.mark.lasting
@pytest.mark.slow
def test_a_doubled_text_takes_twice_the_steps() -> None:
    patterns = list_patterns()
    assert len(patterns) > 200
    slow = {}
    for item in patterns:
        growth, attack = measure_growth(item)
        if growth <= DOUBLED or item.place in BOUNDED:
            continue
        if growth == math.inf or grows_in_long_texts(item, attack):
            slow[f"{item.place} {item.pattern.pattern!r}"] = (round(growth, 1), attack)
    assert not slow, "\n".join(f"{place} {found}" for place, found in slow.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        r"<(\s*/?\s*attached_file)",
        r"[ \t]+$",
        r"(a+)+b",
        r"(?:a|a)*b",
        r"\A\s*,?\s+x",
        r"“([^”]+)”",
        r"x.*y.*z",
        rb"<!--[^>]*-->",
    ],
)
def test_patterns_that_are_slow_are_found(pattern: str | bytes) -> None:
    item = HousePattern("here", re.compile(pattern), is_anchored=False)
    assert measure_growth(item)[0] > DOUBLED


@pytest.mark.parametrize("pattern", [r"<\s*+/?\s*+file", r"(?<!\s)\s++$", r"a+b*c?", r"\w+@"[:3]])
def test_patterns_that_are_linear_are_not(pattern: str) -> None:
    item = HousePattern("here", re.compile(pattern), is_anchored=False)
    assert measure_growth(item)[0] <= DOUBLED
