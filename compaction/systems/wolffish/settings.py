"""What the stages of Wolffish can set."""

from dataclasses import dataclass
from typing import ClassVar

from compaction.core.knobs import KnobGroup, add_settings, knob
from compaction.core.rules import POSITIVE, RATIO, TEXT, require_integer
from compaction.systems.kit.settings import require_template

_NUMBER = require_integer(0)


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class StripKnobs(KnobGroup):
    """The stage `strip_images`: tool results and older messages are sent without their images."""

    prefix: ClassVar[str] = "strip"
    written: ClassVar[tuple[str, ...]] = ("placeholder", "other_placeholder")
    placeholder: str = knob(
        TEXT,
        "[Screenshot analyzed — image omitted from context]",
        "The text that replaces the images of a tool result.",
    )
    other_placeholder: str = knob(
        TEXT,
        "[Image omitted from context]",
        "The text that replaces those of any other message, for example a user's picture.",
    )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class ExcerptKnobs(KnobGroup):
    """The stage `excerpt`: large messages are cut to their beginning and their end."""

    prefix: ClassVar[str] = "excerpt"
    written: ClassVar[tuple[str, ...]] = ("marker",)
    head_ratio: float = knob(
        RATIO, 0.15, "The share of the characters that is kept of the beginning."
    )
    head_cap: int = knob(require_integer(1), 6_000, "At most so many characters of the beginning.")
    tail_ratio: float = knob(RATIO, 0.08, "The share of the characters that is kept of the end.")
    tail_cap: int = knob(_NUMBER, 3_000, "At most so many characters of the end.")
    expected_ratio: float = knob(
        POSITIVE, 0.25, "The share of a message's tokens that its excerpt is expected to take."
    )
    marker: str = knob(
        require_template("total", "omitted", "head", "tail"),
        "[TRUNCATED — {total:,} chars original, {omitted:,} chars omitted, "
        "showing first {head:,} + last {tail:,} chars]",
        "The text between beginning and end, with numbers of characters.",
    )
