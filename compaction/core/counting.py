"""How many tokens a policy takes a text, or a message, to have: in whole numbers, by characters or by what the text is made of."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from compaction.core.features import estimate_by_features
from compaction.core.groups.size import EstimateKnobs
from compaction.core.policy import Policy
from compaction.core.transcript import TranscriptEntry

_FENCE = "```"
_JSON_BRACKETS = {"{": "}", "[": "]"}
_FIRST_CHARACTER = re.compile(r"\s*(\S)")


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """A policy's way to count, for models of one family."""

    estimate: EstimateKnobs
    factor: Fraction  # family and safety

    def count_text(self, text: str, *, is_code: bool = False, framing_chars: int = 0) -> int:
        """Tokens of a text (all of it `code`, or what stands in fences), with so many characters of framing."""
        if self.estimate.method == "features":
            return self._round_tokens(
                estimate_by_features(text) + framing_chars / self.estimate.chars_per_token
            )
        code_chars = (
            (len(text) if is_code else count_fenced_characters(text))
            if self.estimate.code_chars_per_token
            else 0
        )
        return self.count_characters(len(text) - code_chars + framing_chars, code_chars)

    def count_characters(
        self, plain_chars: int, code_chars: int = 0, *, ignore_factor: bool = False
    ) -> int:
        """Tokens of so many characters of which nothing more is known; `bare`: whatever family and safety say."""
        rate = _compute_rate(self.estimate.chars_per_token)
        tokens = plain_chars * rate
        if code_chars:
            tokens += code_chars * (
                _compute_rate(self.estimate.code_chars_per_token)
                if self.estimate.code_chars_per_token
                else rate
            )
        return self._round_tokens(tokens, ignore_factor=ignore_factor)

    def count_entry(self, entry: TranscriptEntry) -> int:
        """Tokens of a message: its words and calls, its images, and what framing it costs."""
        knobs = self.estimate
        framing_tokens = knobs.per_message + knobs.image_tokens * entry.images
        if knobs.method == "characters" and not knobs.code_chars_per_token:
            return framing_tokens + self.count_characters(
                entry.character_count + knobs.per_message_chars
            )
        calls = "".join(call.name + call.arguments for call in entry.calls)
        is_code = entry.role == "tool" and is_json(entry.content)
        return framing_tokens + self.count_text(
            entry.content + calls, is_code=is_code, framing_chars=knobs.per_message_chars
        )

    def _round_tokens(self, tokens: Fraction | float, *, ignore_factor: bool = False) -> int:
        """The text is rounded, and what family and safety make of it again: NeuroLink's ceil(length / 4) × multiplier × margin."""
        rounds_up = self.estimate.rounding == "ceil"
        token_count = int(-(-tokens // 1)) if rounds_up else int(tokens)
        if self.estimate.rounding == "floor_min1":
            token_count = max(1, token_count)
        if ignore_factor or self.factor == 1:
            return token_count
        return (
            -(-token_count * self.factor.numerator // self.factor.denominator)
            if rounds_up
            else int(token_count * self.factor)
        )


def build_counter(policy: Policy, family: str = "") -> TokenCounter:
    """How the policy counts for models of a family."""
    knobs = policy.estimate
    return TokenCounter(
        knobs, _compute_factor(knobs.family_multiplier.get(family, 1), knobs.safety_multiplier)
    )


def count_fenced_characters(text: str) -> int:
    """Characters that stand in fences, as code does in prose; a fence that is not closed runs to the end."""
    total, start = 0, text.find(_FENCE)
    while start >= 0:
        end = text.find(_FENCE, start + len(_FENCE))
        if end < 0:
            return total + len(text) - start
        total += end + len(_FENCE) - start
        start = text.find(_FENCE, end + len(_FENCE))
    return total


def is_json(text: str) -> bool:
    """Whether a text looks like a JSON object or list, by its first and last character."""
    first_match = _FIRST_CHARACTER.match(text)
    return bool(first_match) and _JSON_BRACKETS.get(first_match[1]) == text.rstrip()[-1:]  # type: ignore[index]


@cache
def _compute_rate(chars_per_token: float) -> Fraction:
    return 1 / Fraction(str(chars_per_token))


@lru_cache(maxsize=256)
def _compute_factor(family: float, safety: float) -> Fraction:
    return Fraction(str(family)) * Fraction(str(safety))
