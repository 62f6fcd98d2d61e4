"""What makes a group of knobs: every value is checked where it is set, and a wrong one is refused by its name."""

import math
from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, ClassVar

Check = Callable[[Any], str | None]


class PolicyError(ValueError):
    """A policy that cannot be; `field` names the knob, as in `trigger.threshold`, and `message` says what is wrong with it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class KnobGroup:
    """Base of the frozen dataclasses whose fields are knobs; `prefix` is the group's name in a policy."""

    __slots__ = ()
    prefix: ClassVar[str]

    def __post_init__(self) -> None:
        for knob_field in fields(self):  # type: ignore[arg-type]
            complaint = knob_field.metadata["check"](getattr(self, knob_field.name))
            if complaint:
                raise PolicyError(f"{self.prefix}.{knob_field.name}", complaint)


def knob(check: Check) -> Any:
    """A field of a group; `check` returns what is wrong with a value, or None."""
    return field(metadata={"check": check})


def is_number(value: Any) -> bool:
    """A finite int or float; True and False are no numbers here."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def check_ratio(value: Any) -> str | None:
    """A share of something, 0 to 1."""
    return (
        None
        if is_number(value) and 0 <= value <= 1
        else f"must be a ratio between 0 and 1, not {value!r}"
    )


def check_integer(minimum: int) -> Check:
    """A whole number, at least `minimum`."""

    def check(value: Any) -> str | None:
        is_valid = isinstance(value, int) and not isinstance(value, bool) and value >= minimum
        return None if is_valid else f"must be a whole number of at least {minimum}, not {value!r}"

    return check


def check_positive(value: Any) -> str | None:
    """A number above zero."""
    return None if is_number(value) and value > 0 else f"must be a number above zero, not {value!r}"


def check_flag(value: Any) -> str | None:
    """Yes or no."""
    return None if isinstance(value, bool) else f"must be true or false, not {value!r}"


def check_nonblank(value: Any) -> str | None:
    """A text that is not blank."""
    return (
        None
        if isinstance(value, str) and value.strip()
        else f"must be a text that is not empty, not {value!r}"
    )


def check_choice(*choices: str) -> Check:
    """One of a few names."""
    return lambda value: (
        None
        if isinstance(value, str) and value in choices
        else f"must be one of {', '.join(choices)}, not {value!r}"
    )


def check_choices(*choices: str) -> Check:
    """A tuple of different names out of a few."""

    def check(value: Any) -> str | None:
        is_valid = isinstance(value, tuple) and all(
            isinstance(choice, str) and choice in choices for choice in value
        )
        if is_valid and len(set(value)) == len(value):
            return None
        return f"must be a list of different names out of {', '.join(choices)}, not {value!r}"

    return check


def check_optional(check: Check) -> Check:
    """Null, or what `check` takes."""
    return lambda value: None if value is None else check(value)


def check_text(value: Any) -> str | None:
    """A text, perhaps an empty one."""
    return None if isinstance(value, str) else f"must be a text, not {value!r}"


def check_template(*placeholders: str) -> Check:
    """A text with no other placeholders than these, as `{total}`."""

    def check(value: Any) -> str | None:
        try:
            is_valid = (
                isinstance(value, str)
                and value.format(**dict.fromkeys(placeholders, 0)) is not None
            )
        except (KeyError, IndexError, ValueError):
            is_valid = False
        return (
            None
            if is_valid
            else f"must be a text with no placeholders but {', '.join(f'{{{placeholder}}}' for placeholder in placeholders)}, not {value!r}"
        )

    return check


def check_names(value: Any) -> str | None:
    """A tuple of texts that are not blank."""
    is_valid = isinstance(value, tuple) and all(
        isinstance(name, str) and name.strip() for name in value
    )
    return None if is_valid else f"must be a list of names, not {value!r}"


def check_seconds(value: Any) -> str | None:
    """A tuple of numbers of seconds, none negative."""
    is_valid = isinstance(value, tuple) and all(
        is_number(number) and number >= 0 for number in value
    )
    return None if is_valid else f"must be a list of numbers of seconds, not {value!r}"
