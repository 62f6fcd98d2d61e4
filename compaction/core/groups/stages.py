"""Knobs for the stages: what no stage may change, and what each stage without a model does."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction.core.knobs import KnobGroup, knob
from compaction.core.rules import (
    FLAG,
    NAMES,
    POSITIVE,
    RATIO,
    TEXT,
    require_choice,
    require_integer,
    require_template,
)

ProtectionKind = Literal["token_ratio", "count", "count_ratio", "per_role", "user_turns"]
CrossingItem = Literal["keep", "prune"]

_NUMBER = require_integer(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtectKnobs(KnobGroup):
    """Which messages no stage changes. Pinned messages are always protected."""

    prefix: ClassVar[str] = "protect"
    kind: ProtectionKind = knob(
        require_choice(ProtectionKind),
        "What the protected tail is. `token_ratio`: the newest messages that fit in `ratio` of the "
        "basis. `count`: the newest `count` messages. `count_ratio`: the newest `ratio` of all "
        "messages, rounded up. `per_role`: the newest `count` messages of each role. `user_turns`: "
        "the newest `count` turns.",
    )
    ratio: float = knob(RATIO, "For `token_ratio` and `count_ratio`.")
    count: int = knob(_NUMBER, "For `count`, `per_role` and `user_turns`.")
    minimum: int = knob(_NUMBER, "For `count_ratio`: at least so many messages.")
    first: int = knob(_NUMBER, "So many of the first messages of the conversation stay too.")
    tools: tuple[str, ...] = knob(
        NAMES, "Results of these tools are changed by no stage except the summary."
    )
    errors: bool = knob(FLAG, "Protect tool results that are errors in the same way.")
    min_chars: int = knob(
        _NUMBER, "Messages of up to so many characters are changed by no stage except the summary."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class StripKnobs(KnobGroup):
    """The stage `strip_images`: tool results and older messages are sent without their images."""

    prefix: ClassVar[str] = "strip"
    placeholder: str = knob(TEXT, "The text that replaces the images of a tool result.")
    other_placeholder: str = knob(
        TEXT, "The text that replaces those of any other message, for example a user's picture."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PruneKnobs(KnobGroup):
    """The stage `prune_tool_outputs`: old tool results are replaced by a placeholder."""

    prefix: ClassVar[str] = "prune"
    protect_tokens: int = knob(_NUMBER, "So many tokens of the newest tool results stay.")
    minimum_savings: int = knob(
        _NUMBER, "Nothing is pruned unless it saves at least so many tokens."
    )
    strict: bool = knob(FLAG, "Pruning must save more than `minimum_savings`; equal is too little.")
    crossing_item: CrossingItem = knob(
        require_choice(CrossingItem),
        "What happens to the result with which the total goes over `protect_tokens`.",
    )
    skip_user_turns: int = knob(_NUMBER, "Results in so many of the newest turns stay.")
    protected_tools: tuple[str, ...] = knob(NAMES, "Results of these tools are never pruned.")
    placeholder: str = knob(TEXT, "The text that replaces a pruned result.")


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupeKnobs(KnobGroup):
    """The stage `dedupe_file_reads`: of several reads of a whole file only the latest stays."""

    prefix: ClassVar[str] = "dedupe"
    tools: tuple[str, ...] = knob(NAMES, "The tools that read a file.")
    minimum_ratio: float = knob(
        RATIO, "The share of the tokens of a file's reads that must be saved, else they stay."
    )
    placeholder: str = knob(require_template("path"), "The text that replaces an earlier read.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExcerptKnobs(KnobGroup):
    """The stage `excerpt`: large messages are cut to their beginning and their end."""

    prefix: ClassVar[str] = "excerpt"
    head_ratio: float = knob(RATIO, "The share of the characters that is kept of the beginning.")
    head_cap: int = knob(require_integer(1), "At most so many characters of the beginning.")
    tail_ratio: float = knob(RATIO, "The share of the characters that is kept of the end.")
    tail_cap: int = knob(_NUMBER, "At most so many characters of the end.")
    expected_ratio: float = knob(
        POSITIVE, "The share of a message's tokens that its excerpt is expected to take."
    )
    marker: str = knob(
        require_template("total", "omitted", "head", "tail"),
        "The text between beginning and end, with numbers of characters.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SlideKnobs(KnobGroup):
    """The stage `slide_window`: the oldest messages are left out of the request."""

    prefix: ClassVar[str] = "slide"
    fraction: float = knob(
        RATIO,
        "The share of the remaining messages, an even number, that is left out in each step until "
        "the rest fits.",
    )
    marker: str = knob(TEXT, "The text that tells the model that messages were left out.")
