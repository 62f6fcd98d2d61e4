"""Knobs for size: how large a context may be, how it is counted, and when it is too large."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from compaction.core.knobs import KnobGroup, knob
from compaction.core.rules import (
    FLAG,
    POSITIVE,
    RATIO,
    Rule,
    allow_null,
    require_choice,
    require_integer,
    require_selection,
    require_values_by_name,
)

Phase = Literal["after_response", "before_request", "on_model_change", "on_overflow", "manual"]
Basis = Literal["window", "input"]
CountingMethod = Literal["characters", "features"]
Rounding = Literal["floor_min1", "floor", "ceil"]
CalibrationMode = Literal["last_usage", "max", "floor", "none"]

_TOKENS = require_integer(0)
_WINDOW = require_integer(1)


def _is_window(value: object) -> bool:
    return value == "disable" or _WINDOW.accepts(value)


def _is_reserve(value: object) -> bool:
    if value == "model" or _TOKENS.accepts(value):
        return True
    if not isinstance(value, Mapping) or set(value) != {"ratio", "max"}:
        return False
    return RATIO.accepts(value["ratio"]) and _TOKENS.accepts(value["max"])


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowKnobs(KnobGroup):
    """The context window to assume for a model whose window is not known, in tokens."""

    prefix: ClassVar[str] = "window"
    unknown: int | Literal["disable"] = knob(
        Rule('"disable" or a number of tokens above zero', _is_window),
        "The window of a model that the registry knows nothing about. `disable`: the sessions of "
        "such a model are not compacted unasked; a refusal for length teaches the window.",
    )
    by_family: Mapping[str, int] = knob(
        require_values_by_name(_WINDOW),
        "Windows by model family, for example `anthropic`. They come before `unknown`.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetKnobs(KnobGroup):
    """How much of the window a request may use, and what the ratios of a policy are ratios of."""

    prefix: ClassVar[str] = "budget"
    basis: Basis = knob(
        require_choice(Basis),
        "What ratios refer to: the whole window, or the input, which is the window without the "
        "output reserve.",
    )
    output_reserve: int | Mapping[str, float] | Literal["model"] = knob(
        Rule('a number of tokens, "model" or {"ratio": 0–1, "max": tokens}', _is_reserve),
        "Tokens kept free for the answer: a number; a share of the window with a maximum; or "
        "`model`, what the registry says of the model. A `max_tokens` that the session sets "
        "replaces it, unless the reserve is 0.",
    )
    safety_margin: int = knob(
        _TOKENS, "Tokens that `trigger.clamp` leaves free in addition to the output reserve."
    )
    floor_ratio: float = knob(
        RATIO, "The input is never smaller than this share of the window, whatever the reserve."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TriggerKnobs(KnobGroup):
    """When a session is compacted: at what size, and at which moments."""

    prefix: ClassVar[str] = "trigger"
    threshold: float = knob(RATIO, "The share of the basis at which a context is too large.")
    clamp: bool = knob(
        FLAG,
        "Lower the threshold where it is above the input without `budget.safety_margin`, so that "
        "compaction comes before the window is full.",
    )
    strict: bool = knob(
        FLAG, "Act only above the threshold. If false, a context of exactly that size is too large."
    )
    phases: tuple[Phase, ...] = knob(
        require_selection(get_args(Phase)),
        "The moments at which a compaction may start. `on_overflow` is after the provider refused "
        "a request for its length; `manual` is when somebody asks for it.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateKnobs(KnobGroup):
    """How tokens are estimated where no provider has counted them."""

    prefix: ClassVar[str] = "estimate"
    method: CountingMethod = knob(
        require_choice(CountingMethod),
        "`characters` divides the number of characters; `features` uses a formula fitted to real "
        "tokenizers.",
    )
    chars_per_token: float = knob(POSITIVE, "Characters that make one token.")
    code_chars_per_token: float | None = knob(
        allow_null(POSITIVE), "The same for code and JSON. Null: as `chars_per_token`."
    )
    rounding: Rounding = knob(
        require_choice(Rounding),
        "How the tokens of one text become a whole number. `floor_min1` rounds down, but to 1 at "
        "least for a text that is not empty.",
    )
    per_message: int = knob(_TOKENS, "Tokens added for each message.")
    per_message_chars: int = knob(_TOKENS, "Characters added to each message.")
    per_conversation: int = knob(_TOKENS, "Tokens added once for each request.")
    image_tokens: int = knob(_TOKENS, "Tokens that an image takes.")
    family_multiplier: Mapping[str, float] = knob(
        require_values_by_name(POSITIVE),
        "Factors by model family, for families whose tokenizers count more than the estimate.",
    )
    safety_multiplier: float = knob(POSITIVE, "A factor for every text, to be on the safe side.")
    count_system: bool = knob(FLAG, "Count the system prompt.")
    count_tools: bool = knob(FLAG, "Count the definitions of tools.")
    calibration: CalibrationMode = knob(
        require_choice(CalibrationMode),
        "How the provider's count of the last call is used. `last_usage`: it replaces the estimate "
        "of everything up to its answer. `floor`: the larger of that and the estimate. `max`: the "
        "larger of the estimate and the input that the provider counted. `none`: not at all.",
    )
