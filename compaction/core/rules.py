"""What values a setting takes: rules that check a value and say in words what they expect."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard, get_args


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its expectation completes the sentence "must be ..." and fills the reference."""

    expectation: str
    accepts: Callable[[object], bool]

    def find_complaint(self, value: object) -> str | None:
        """Return what is wrong with a value, as a clause without its subject, or None."""
        return None if self.accepts(value) else f"must be {self.expectation}, not {value!r}"


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite int or float; True and False do not count as numbers.

    Nor does a whole number that is too large to count with.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_ratio(value: object) -> bool:
    return is_number(value) and 0 <= value <= 1


def _is_positive(value: object) -> bool:
    return is_number(value) and value > 0


def _is_filled_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_name_list(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_filled_text, value))


RATIO = Rule("a ratio between 0 and 1", _is_ratio)
POSITIVE = Rule("a number above zero", _is_positive)
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
TEXT = Rule("a text", lambda value: isinstance(value, str))
FILLED_TEXT = Rule("a text that is not empty", _is_filled_text)
NAMES = Rule("a list of names", _is_name_list)


def require_integer(minimum: int) -> Rule:
    """Build the rule for a whole number that is not below a minimum."""

    def accepts(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= minimum

    return Rule(f"a whole number of at least {minimum}", accepts)


def require_choice(literal: object) -> Rule:
    """Build the rule for one of the names of a `Literal[...]` type."""
    names = get_args(literal)
    return Rule(
        f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names
    )


def require_selection(names: tuple[str, ...]) -> Rule:
    """Build the rule for a list of different names out of these; the list may be empty."""

    def accepts(value: object) -> bool:
        if not isinstance(value, tuple):
            return False
        has_known_names = all(isinstance(name, str) and name in names for name in value)
        return has_known_names and len(set(value)) == len(value)

    return Rule(f"a list of different names out of {', '.join(names)}", accepts)


def require_values_by_name(rule: Rule) -> Rule:
    """Build the rule for an object with any names, in which every value follows the given rule."""

    def accepts(value: object) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(name, str) and rule.accepts(item) for name, item in value.items()
        )

    return Rule(f"an object that gives each name {rule.expectation}", accepts)


def allow_null(rule: Rule) -> Rule:
    """Build the rule that takes null, and else what the given rule takes."""
    return Rule(f"null or {rule.expectation}", lambda value: value is None or rule.accepts(value))
