"""How large a context may be, how large it is taken to be, and when that is too large."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from compaction.core.knobs import (
    Group,
    flag,
    is_number,
    knob,
    maybe,
    one_of,
    positive,
    ratio,
    some_of,
    whole,
)

PHASES = ("after_response", "before_request", "on_model_change", "on_overflow", "manual")


def _window_or_disable(value: Any) -> str | None:
    complaint = None if value == "disable" else whole(1)(value)
    return complaint and f'must be "disable" or a number of tokens above zero, not {value!r}'


def _reserve(value: Any) -> str | None:
    if value == "model" or whole(0)(value) is None:
        return None
    share = (
        isinstance(value, Mapping)
        and set(value) == {"ratio", "max"}
        and ratio(value["ratio"]) is None
        and whole(0)(value["max"]) is None
    )
    return (
        None
        if share
        else f'must be a number of tokens, "model" or {{"ratio": 0–1, "max": tokens}}, not {value!r}'
    )


def _multipliers(value: Any) -> str | None:
    right = isinstance(value, Mapping) and all(
        isinstance(name, str) and is_number(each) and each > 0 for name, each in value.items()
    )
    return None if right else f"must give each family a number above zero, not {value!r}"


def _windows(value: Any) -> str | None:
    right = isinstance(value, Mapping) and all(
        isinstance(name, str) and whole(1)(each) is None for name, each in value.items()
    )
    return None if right else f"must give each family a number of tokens above zero, not {value!r}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Window(Group):
    """The model's context window, in tokens; `unknown` is what to take where the model does not say, `by_family` by the model's family."""

    prefix: ClassVar[str] = "window"
    unknown: int | Literal["disable"] = knob(_window_or_disable)
    by_family: Mapping[str, int] = knob(_windows)


@dataclass(frozen=True, kw_only=True, slots=True)
class Basis(Group):
    """What ratios are ratios of: the whole window, or the input (the window without the output reserve).

    `output_reserve`: tokens; a share of the window with a maximum; or `model`, what the registry says of the model. A max_tokens that the
    session sets wins over a reserve that is not 0. `safety_margin`, in tokens, counts in the clamp; the input is never below `floor_ratio`.
    """

    prefix: ClassVar[str] = "budget"
    basis: Literal["window", "input"] = knob(one_of("window", "input"))
    output_reserve: int | Mapping[str, float] | Literal["model"] = knob(_reserve)
    safety_margin: int = knob(whole(0))
    floor_ratio: float = knob(ratio)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trigger(Group):
    """When to act: at which share of the basis (`strict`: above it, equal is not over), and at which moments.

    `clamp`: at the latest where the window is full but for the output reserve and the safety margin.
    """

    prefix: ClassVar[str] = "trigger"
    threshold: float = knob(ratio)
    clamp: bool = knob(flag)
    strict: bool = knob(flag)
    phases: tuple[str, ...] = knob(some_of(*PHASES))


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate(Group):
    """How to count what no provider has counted.

    `method`: `characters`, so many to a token (`code_chars_per_token` in code, where it is set), or `features`, the fitted heuristic.
    `rounding` is of a text; `per_message` (tokens), `per_message_chars` and `per_conversation` (tokens) are what framing costs.
    Family and safety multiply what texts count. `calibration`, by what the provider counted in the last call on this context:
    `last_usage` takes its count for all up to its answer, `floor` the larger of that and the estimate, `max` the larger of the estimate
    and the bare count of that call's input, `none` nothing.
    """

    prefix: ClassVar[str] = "estimate"
    method: Literal["characters", "features"] = knob(one_of("characters", "features"))
    chars_per_token: float = knob(positive)
    code_chars_per_token: float | None = knob(maybe(positive))
    rounding: Literal["floor_min1", "floor", "ceil"] = knob(one_of("floor_min1", "floor", "ceil"))
    per_message: int = knob(whole(0))
    per_message_chars: int = knob(whole(0))
    per_conversation: int = knob(whole(0))
    image_tokens: int = knob(whole(0))
    family_multiplier: Mapping[str, float] = knob(_multipliers)
    safety_multiplier: float = knob(positive)
    count_system: bool = knob(flag)
    count_tools: bool = knob(flag)
    calibration: Literal["last_usage", "max", "floor", "none"] = knob(
        one_of("last_usage", "max", "floor", "none")
    )
