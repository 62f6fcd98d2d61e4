"""How many tokens a policy takes a text, or a message, to have: in whole numbers, by characters or by what the text is made of."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from compaction.core.features import tokens_in
from compaction.core.groups.size import Estimate
from compaction.core.policy import Policy
from compaction.core.transcript import Entry

_FENCE = "```"
_JSON = {"{": "}", "[": "]"}
_EDGE = re.compile(r"\s*(\S)")


@dataclass(frozen=True, slots=True)
class Counter:
    """A policy's way to count, for models of one family."""

    estimate: Estimate
    factor: Fraction  # family and safety

    def text(self, text: str, *, code: bool = False, framing: int = 0) -> int:
        """Tokens of a text (all of it `code`, or what stands in fences), with so many characters of framing."""
        if self.estimate.method == "features":
            return self._rounded(tokens_in(text) + framing / self.estimate.chars_per_token)
        in_code = (len(text) if code else fenced(text)) if self.estimate.code_chars_per_token else 0
        return self.characters(len(text) - in_code + framing, in_code)

    def characters(self, plain: int, code: int = 0, *, bare: bool = False) -> int:
        """Tokens of so many characters of which nothing more is known; `bare`: whatever family and safety say."""
        rate = _rate(self.estimate.chars_per_token)
        tokens = plain * rate
        if code:
            tokens += code * (
                _rate(self.estimate.code_chars_per_token)
                if self.estimate.code_chars_per_token
                else rate
            )
        return self._rounded(tokens, bare=bare)

    def entry(self, entry: Entry) -> int:
        """Tokens of a message: its words and calls, its images, and what framing it costs."""
        knobs = self.estimate
        framed = knobs.per_message + knobs.image_tokens * entry.images
        if knobs.method == "characters" and not knobs.code_chars_per_token:
            return framed + self.characters(entry.characters + knobs.per_message_chars)
        calls = "".join(call.name + call.arguments for call in entry.calls)
        code = entry.role == "tool" and is_json(entry.content)
        return framed + self.text(entry.content + calls, code=code, framing=knobs.per_message_chars)

    def _rounded(self, tokens: Fraction | float, *, bare: bool = False) -> int:
        """The text is rounded, and what family and safety make of it again: NeuroLink's ceil(length / 4) × multiplier × margin."""
        up = self.estimate.rounding == "ceil"
        whole = int(-(-tokens // 1)) if up else int(tokens)
        if self.estimate.rounding == "floor_min1":
            whole = max(1, whole)
        if bare or self.factor == 1:
            return whole
        return (
            -(-whole * self.factor.numerator // self.factor.denominator)
            if up
            else int(whole * self.factor)
        )


def counter(policy: Policy, family: str = "") -> Counter:
    """How the policy counts for models of a family."""
    knobs = policy.estimate
    return Counter(knobs, _factor(knobs.family_multiplier.get(family, 1), knobs.safety_multiplier))


def fenced(text: str) -> int:
    """Characters that stand in fences, as code does in prose; a fence that is not closed runs to the end."""
    total, place = 0, text.find(_FENCE)
    while place >= 0:
        end = text.find(_FENCE, place + len(_FENCE))
        if end < 0:
            return total + len(text) - place
        total += end + len(_FENCE) - place
        place = text.find(_FENCE, end + len(_FENCE))
    return total


def is_json(text: str) -> bool:
    """Whether a text looks like a JSON object or list, by its first and last character."""
    opening = _EDGE.match(text)
    return bool(opening) and _JSON.get(opening[1]) == text.rstrip()[-1:]  # type: ignore[index]


@cache
def _rate(chars_per_token: float) -> Fraction:
    return 1 / Fraction(str(chars_per_token))


@lru_cache(maxsize=256)
def _factor(family: float, safety: float) -> Fraction:
    return Fraction(str(family)) * Fraction(str(safety))
