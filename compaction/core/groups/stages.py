"""What stays as it is, and what each stage that calls no model does to the rest."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction.core.knobs import (
    KnobGroup,
    check_choice,
    check_flag,
    check_integer,
    check_names,
    check_positive,
    check_ratio,
    check_template,
    check_text,
    knob,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtectKnobs(KnobGroup):
    """What no stage touches; pinned messages are protected always.

    `kind` tells the tail: `token_ratio`, whole messages within `ratio` of the budget's basis; `count`, the newest `count`; `count_ratio`,
    `ratio` of all, at least `minimum`; `per_role`, the newest `count` of each role (what stands between older ones of them may be changed
    in place); `user_turns`, the newest `count` turns. `first`: so many of the conversation's first messages stay too, however old.
    `tools`: results of these tools are changed by no stage but the summary; `errors`: nor results that are errors; nor messages of up to
    `min_chars`.
    """

    prefix: ClassVar[str] = "protect"
    kind: Literal["token_ratio", "count", "count_ratio", "per_role", "user_turns"] = knob(
        check_choice("token_ratio", "count", "count_ratio", "per_role", "user_turns")
    )
    ratio: float = knob(check_ratio)
    count: int = knob(check_integer(0))
    minimum: int = knob(check_integer(0))
    first: int = knob(check_integer(0))
    tools: tuple[str, ...] = knob(check_names)
    errors: bool = knob(check_flag)
    min_chars: int = knob(check_integer(0))


@dataclass(frozen=True, kw_only=True, slots=True)
class StripKnobs(KnobGroup):
    """Images of older messages are replaced by a text."""

    prefix: ClassVar[str] = "strip"
    placeholder: str = knob(check_text)


@dataclass(frozen=True, kw_only=True, slots=True)
class PruneKnobs(KnobGroup):
    """Old tool results are replaced by a placeholder, from the newest back: `protect_tokens` of them stay.

    `crossing_item`: whether the result that crosses that number is kept or pruned. `skip_user_turns` newest turns are not looked at.
    Nothing is pruned unless it saves `minimum_savings` tokens (`strict`: more than that). `protected_tools` are never pruned.
    """

    prefix: ClassVar[str] = "prune"
    protect_tokens: int = knob(check_integer(0))
    minimum_savings: int = knob(check_integer(0))
    strict: bool = knob(check_flag)
    crossing_item: Literal["keep", "prune"] = knob(check_choice("keep", "prune"))
    skip_user_turns: int = knob(check_integer(0))
    protected_tools: tuple[str, ...] = knob(check_names)
    placeholder: str = knob(check_text)


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupeKnobs(KnobGroup):
    """Of several whole reads of one file, by these `tools`, only the latest stays, when that saves `minimum_ratio` of what they take."""

    prefix: ClassVar[str] = "dedupe"
    tools: tuple[str, ...] = knob(check_names)
    minimum_ratio: float = knob(check_ratio)
    placeholder: str = knob(check_template("path"))


@dataclass(frozen=True, kw_only=True, slots=True)
class ExcerptKnobs(KnobGroup):
    """Large messages are cut to their beginning and end, in characters: a ratio of the whole, capped."""

    prefix: ClassVar[str] = "excerpt"
    head_ratio: float = knob(check_ratio)
    head_cap: int = knob(check_integer(1))
    tail_ratio: float = knob(check_ratio)
    tail_cap: int = knob(check_integer(0))
    expected_ratio: float = knob(check_positive)
    marker: str = knob(check_template("total", "omitted", "head", "tail"))


@dataclass(frozen=True, kw_only=True, slots=True)
class SlideKnobs(KnobGroup):
    """The oldest messages after the protected first ones are left out: this share of them, an even number, until the rest fits."""

    prefix: ClassVar[str] = "slide"
    fraction: float = knob(check_ratio)
    marker: str = knob(check_text)
