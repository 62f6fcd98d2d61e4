"""How large a context may be, how large it is taken to be, and when that is too large."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from compaction.core.knobs import (
    KnobGroup,
    check_choice,
    check_choices,
    check_flag,
    check_integer,
    check_optional,
    check_positive,
    check_ratio,
    is_number,
    knob,
)

PHASES = ("after_response", "before_request", "on_model_change", "on_overflow", "manual")


def _check_window(value: Any) -> str | None:
    complaint = None if value == "disable" else check_integer(1)(value)
    return complaint and f'must be "disable" or a number of tokens above zero, not {value!r}'


def _check_reserve(value: Any) -> str | None:
    if value == "model" or check_integer(0)(value) is None:
        return None
    is_share = (
        isinstance(value, Mapping)
        and set(value) == {"ratio", "max"}
        and check_ratio(value["ratio"]) is None
        and check_integer(0)(value["max"]) is None
    )
    return (
        None
        if is_share
        else f'must be a number of tokens, "model" or {{"ratio": 0–1, "max": tokens}}, not {value!r}'
    )


def _check_multipliers(value: Any) -> str | None:
    is_valid = isinstance(value, Mapping) and all(
        isinstance(name, str) and is_number(number) and number > 0 for name, number in value.items()
    )
    return None if is_valid else f"must give each family a number above zero, not {value!r}"


def _check_windows(value: Any) -> str | None:
    is_valid = isinstance(value, Mapping) and all(
        isinstance(name, str) and check_integer(1)(tokens) is None for name, tokens in value.items()
    )
    return (
        None if is_valid else f"must give each family a number of tokens above zero, not {value!r}"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowKnobs(KnobGroup):
    """The model's context window, in tokens; `unknown` is what to take where the model does not say, `by_family` by the model's family."""

    prefix: ClassVar[str] = "window"
    unknown: int | Literal["disable"] = knob(_check_window)
    by_family: Mapping[str, int] = knob(_check_windows)


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetKnobs(KnobGroup):
    """What ratios are ratios of: the whole window, or the input (the window without the output reserve).

    `output_reserve`: tokens; a share of the window with a maximum; or `model`, what the registry says of the model. A max_tokens that the
    session sets wins over a reserve that is not 0. `safety_margin`, in tokens, counts in the clamp; the input is never below `floor_ratio`.
    """

    prefix: ClassVar[str] = "budget"
    basis: Literal["window", "input"] = knob(check_choice("window", "input"))
    output_reserve: int | Mapping[str, float] | Literal["model"] = knob(_check_reserve)
    safety_margin: int = knob(check_integer(0))
    floor_ratio: float = knob(check_ratio)


@dataclass(frozen=True, kw_only=True, slots=True)
class TriggerKnobs(KnobGroup):
    """When to act: at which share of the basis (`strict`: above it, equal is not over), and at which moments.

    `clamp`: at the latest where the window is full but for the output reserve and the safety margin.
    """

    prefix: ClassVar[str] = "trigger"
    threshold: float = knob(check_ratio)
    clamp: bool = knob(check_flag)
    strict: bool = knob(check_flag)
    phases: tuple[str, ...] = knob(check_choices(*PHASES))


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateKnobs(KnobGroup):
    """How to count what no provider has counted.

    `method`: `characters`, so many to a token (`code_chars_per_token` in code, where it is set), or `features`, the fitted heuristic.
    `rounding` is of a text; `per_message` (tokens), `per_message_chars` and `per_conversation` (tokens) are what framing costs.
    Family and safety multiply what texts count. `calibration`, by what the provider counted in the last call on this context:
    `last_usage` takes its count for all up to its answer, `floor` the larger of that and the estimate, `max` the larger of the estimate
    and the bare count of that call's input, `none` nothing.
    """

    prefix: ClassVar[str] = "estimate"
    method: Literal["characters", "features"] = knob(check_choice("characters", "features"))
    chars_per_token: float = knob(check_positive)
    code_chars_per_token: float | None = knob(check_optional(check_positive))
    rounding: Literal["floor_min1", "floor", "ceil"] = knob(
        check_choice("floor_min1", "floor", "ceil")
    )
    per_message: int = knob(check_integer(0))
    per_message_chars: int = knob(check_integer(0))
    per_conversation: int = knob(check_integer(0))
    image_tokens: int = knob(check_integer(0))
    family_multiplier: Mapping[str, float] = knob(_check_multipliers)
    safety_multiplier: float = knob(check_positive)
    count_system: bool = knob(check_flag)
    count_tools: bool = knob(check_flag)
    calibration: Literal["last_usage", "max", "floor", "none"] = knob(
        check_choice("last_usage", "max", "floor", "none")
    )
