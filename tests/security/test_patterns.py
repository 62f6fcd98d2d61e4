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
DOUBLED = 3.0  # twice the text: twice the steps if it is linear, four times if it is quadratic
WORST = 4  # attacks of a pattern that are tried with the doubled text too
BOUNDED = {
    "chatcore/providers/overflow.py:_OVERFLOW_REGEXES": "300 characters behind a word of a refusal",
    "chatcore/providers/overflow.py:_TOO_LARGE_FOR_RATE": "400 characters of a refusal",
    "chatcore/providers/refusal_bodies.py:_TITLE": "200 characters of a tag",
    "chatcore/tools/page_text.py:_META_CHARSET": "the first 2,048 bytes of a page",
    "compaction/core/credentials.py:_ENVIRONMENT_NAME": "a name of at most 100 characters",
    "compaction/memory/core/ledger/recognition.py:_FEELING": "a sentence of at most 400 characters",
    "compaction/memory/core/ledger/sentences.py:_WORD_BEFORE": "the 30 characters before a mark",
    "compaction/memory/core/ledger/values.py:_ORDINARY": "only matched with a whole value",
    "models_registry/reasoning.py:_SNAPSHOT": "a model's name of 128 characters, at one place",
    "compaction/summaries/validation.py:_PLACEHOLDER": "80 characters before a word of a summary",
}


@pytest.fixture(autouse=True)
def deep_recursion() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


def measure_growth(item: HousePattern) -> tuple[float, str]:
    """Return how many times more steps the worst doubled text takes, and what it repeats."""
    attacks = list_attacks(item.pattern)

    def count(attack: tuple[str, str], length: int) -> int:
        text = build_attack(attack, length)
        return count_steps(item.pattern, text, anchored=item.is_anchored, most=MOST_STEPS)

    steps = {attack: count(attack, LENGTH) for attack in attacks}
    if MOST_STEPS in steps.values():
        return math.inf, repr(max(attacks, key=lambda attack: steps[attack]))
    worst_attacks = sorted(attacks, key=lambda attack: -steps[attack])[:WORST]
    return max((count(each, 2 * LENGTH) / steps[each], repr(each)) for each in worst_attacks)


@pytest.mark.lasting
@pytest.mark.slow
def test_a_doubled_text_takes_twice_the_steps() -> None:
    patterns = list_patterns()
    assert len(patterns) > 200
    slow = {}
    for item in patterns:
        growth, attack = measure_growth(item)
        if growth > DOUBLED and item.place not in BOUNDED:
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
