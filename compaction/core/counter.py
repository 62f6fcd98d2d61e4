"""How tokens are counted: a rule for characters, or a formula over what a text is made of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import ClassVar, Literal

from compaction.core.knobs import KnobGroup, knob
from compaction.core.rules import (
    FLAG,
    POSITIVE,
    allow_null,
    require_choice,
    require_integer,
    require_values_by_name,
)
from compaction.core.transcript import Transcript, TranscriptEntry
from textkit.token_features import estimate_by_features

CountingMethod = Literal["characters", "features"]
Rounding = Literal["floor_min1", "floor", "ceil"]
CalibrationMode = Literal["last_usage", "max", "floor", "none"]
_NUMBER = require_integer(0)

_FENCE = "```"
_JSON_BRACKETS = {"{": "}", "[": "]"}
_FIRST_CHARACTER = re.compile(r"\s*(\S)")

# The plain estimate. Nothing of chatcore is imported here, which
# has its own in base/token_estimate.py, as the page has in js/token_estimate.js; a test compares.
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateKnobs(KnobGroup):
    """How tokens are estimated where no provider has counted them."""

    prefix: ClassVar[str] = "estimate"
    method: CountingMethod = knob(
        require_choice(CountingMethod),
        "characters",
        "`characters` divides the number of characters; `features` uses a formula fitted to "
        "real tokenizers.",
    )
    chars_per_token: float = knob(POSITIVE, CHARS_PER_TOKEN, "Characters that make one token.")
    code_chars_per_token: float | None = knob(
        allow_null(POSITIVE), None, "The same for code and JSON. Null: as `chars_per_token`."
    )
    rounding: Rounding = knob(
        require_choice(Rounding),
        "floor_min1",
        "How the tokens of one text become a whole number. `floor_min1` rounds down, but to 1 "
        "at least for a text that is not empty.",
    )
    per_message: int = knob(_NUMBER, 0, "Tokens added for each message.")
    per_message_chars: int = knob(_NUMBER, 0, "Characters added to each message.")
    per_conversation: int = knob(_NUMBER, 0, "Tokens added once for each request.")
    image_tokens: int = knob(_NUMBER, 1_024, "Tokens that an image takes.")
    family_multiplier: Mapping[str, float] = knob(
        require_values_by_name(POSITIVE),
        {},
        "Factors by model family, for families whose tokenizers count more than the estimate.",
    )
    safety_multiplier: float = knob(POSITIVE, 1, "A factor for every text, to be on the safe side.")
    count_system: bool = knob(FLAG, True, "Count the system prompt.")
    count_tools: bool = knob(FLAG, True, "Count the definitions of tools.")
    calibration: CalibrationMode = knob(
        require_choice(CalibrationMode),
        "last_usage",
        "How the provider's count of the last call is used. `last_usage`: it replaces the "
        "estimate of everything up to its answer. `floor`: the larger of that and the estimate. "
        "`max`: the larger of the estimate and the input that the provider counted. `none`: not "
        "at all.",
    )


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """A policy's rule for models of one family: by characters, or by what a text is made of.

    For example, 1,001 characters at 4 characters a token, rounded up, are 251 tokens. With the
    factors 1.23 (family) and 1.15 (safety) they are 251 * 1.4145, rounded up again: 356 tokens.
    """

    estimate: EstimateKnobs
    factor: Fraction
    """The product of the family's multiplier and the safety multiplier."""

    def count_text(self, text: str, *, is_code: bool = False, framing_chars: int = 0) -> int:
        """Return the tokens of a text with so many characters of framing.

        Unless all of the text is code, only what stands in fences is.
        """
        if self.estimate.method == "features":
            framing_tokens = framing_chars / self.estimate.chars_per_token
            return self._round_quotient(estimate_by_features(text) + framing_tokens, 1)
        if not self.estimate.code_chars_per_token:
            code_chars = 0
        elif is_code:
            code_chars = len(text)
        else:
            code_chars = count_fenced_characters(text)
        return self.count_characters(len(text) - code_chars + framing_chars, code_chars)

    def count_characters(
        self, plain_chars: int, code_chars: int = 0, *, ignore_factor: bool = False
    ) -> int:
        """Return the tokens of a text of which only the numbers of characters are known.

        `ignore_factor` leaves out the multipliers of family and safety.
        """
        knobs = self.estimate
        # Whole numbers, because every message is counted, and fractions take ten times longer.
        tokens, characters = _compute_rate(knobs.chars_per_token)
        dividend = plain_chars * tokens
        divisor = characters
        if code_chars:
            tokens, characters = _compute_rate(knobs.code_chars_per_token or knobs.chars_per_token)
            dividend = dividend * characters + code_chars * tokens * divisor
            divisor *= characters
        return self._round_quotient(dividend, divisor, ignore_factor=ignore_factor)

    def count_entry(
        self, entry: TranscriptEntry, *, content: str | None = None, images: int | None = None
    ) -> int:
        """Return the tokens of a message: its text, calls and images, and its framing.

        `content` and `images` replace those of the message.
        """
        knobs = self.estimate
        text = entry.content if content is None else content
        image_count = entry.images if images is None else images
        framing_tokens = knobs.per_message + knobs.image_tokens * image_count
        if knobs.method == "characters" and not knobs.code_chars_per_token:
            call_characters = entry.call_characters if entry.calls else 0
            characters = len(text) + call_characters + knobs.per_message_chars
            return framing_tokens + self.count_characters(characters)
        is_code = entry.role == "tool" and is_json(text)
        calls = "".join(call.name + call.arguments for call in entry.calls)
        return framing_tokens + self.count_text(
            text + calls, is_code=is_code, framing_chars=knobs.per_message_chars
        )

    def count_overhead(self, transcript: Transcript) -> int:
        """Return the tokens of everything but the messages and the summary."""
        knobs = self.estimate
        tokens = transcript.overhead_tokens + knobs.per_conversation
        if transcript.system and knobs.count_system:
            tokens += self.count_text(transcript.system)
        if transcript.tools and knobs.count_tools:
            tokens += self.count_characters(len(transcript.tools), ignore_factor=True)
        return tokens

    def _round_quotient(self, dividend: float, divisor: int, *, ignore_factor: bool = False) -> int:
        # Rounded before and after the factor: ceil(ceil(length / 4) * multiplier * margin).
        rounds_up = self.estimate.rounding == "ceil"
        token_count = int(-(-dividend // divisor) if rounds_up else dividend // divisor)
        if self.estimate.rounding == "floor_min1" and dividend > 0:
            token_count = max(1, token_count)
        if ignore_factor:
            return token_count
        product = token_count * self.factor.numerator
        divisor = self.factor.denominator
        return -(-product // divisor) if rounds_up else product // divisor


def count_fenced_characters(text: str) -> int:
    """Return the number of characters in Markdown fences, which are included.

    A fence that is not closed runs to the end of the text.
    """
    total = 0
    start = text.find(_FENCE)
    while start >= 0:
        end = text.find(_FENCE, start + len(_FENCE))
        if end < 0:
            return total + len(text) - start
        total += end + len(_FENCE) - start
        start = text.find(_FENCE, end + len(_FENCE))
    return total


def is_json(text: str) -> bool:
    """Return whether a text looks like a JSON object or list, by its first and last character."""
    first_match = _FIRST_CHARACTER.match(text)
    if first_match is None:
        return False
    return _JSON_BRACKETS.get(first_match[1]) == text.rstrip()[-1:]


# Fractions, because 0.1 + 0.2 must not round a token up; cached, because they are slow to create.
@cache
def _compute_rate(chars_per_token: float) -> tuple[int, int]:
    """Return how many tokens stand for how many characters, both whole numbers."""
    characters, tokens = Fraction(str(chars_per_token)).as_integer_ratio()
    return tokens, characters


@lru_cache(maxsize=256)
def compute_factor(family: float, safety: float) -> Fraction:
    return Fraction(str(family)) * Fraction(str(safety))
