"""Count tokens by a policy's own rule: by characters, or by what a text is made of.

For example, 1,001 characters at 4 characters a token, rounded up, are 251 tokens. With the factors
1.23 (family) and 1.15 (safety) they are 251 * 1.4145, rounded up again: 356 tokens.
"""

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
    """A policy's rule for models of one family."""

    estimate: EstimateKnobs
    factor: Fraction
    """The product of the family's multiplier and the safety multiplier."""

    def count_text(self, text: str, *, is_code: bool = False, framing_chars: int = 0) -> int:
        """Return the tokens of a text with so many characters of framing.

        Unless all of the text is code, only what stands in fences is.
        """
        if self.estimate.method == "features":
            return self._round_tokens(
                estimate_by_features(text) + framing_chars / self.estimate.chars_per_token
            )
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
        tokens = plain_chars * _compute_rate(knobs.chars_per_token)
        if code_chars:
            tokens += code_chars * _compute_rate(
                knobs.code_chars_per_token or knobs.chars_per_token
            )
        return self._round_tokens(tokens, ignore_factor=ignore_factor)

    def count_entry(self, entry: TranscriptEntry) -> int:
        """Return the tokens of a message: its text, calls and images, and its framing."""
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
        # Rounded before and after the factor, as in NeuroLink, Token Estimation:
        # ceil(ceil(length / 4) * multiplier * margin).
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
    """Return the policy's counter for models of a family."""
    knobs = policy.estimate
    family_multiplier = knobs.family_multiplier.get(family, 1)
    return TokenCounter(knobs, _compute_factor(family_multiplier, knobs.safety_multiplier))


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
def _compute_rate(chars_per_token: float) -> Fraction:
    return 1 / Fraction(str(chars_per_token))


@lru_cache(maxsize=256)
def _compute_factor(family: float, safety: float) -> Fraction:
    return Fraction(str(family)) * Fraction(str(safety))
