"""How language models reason: one table of their names, for all that asks a model to think little.

It follows what vendors write and users report. A name that is not listed reasons not, as far as
anybody knows; a field that a server refuses nevertheless is learned (`dialects.py`).
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

Kind = Literal["none", "effort", "budget", "adaptive"]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model takes to reason little.

    `none`: it does not reason. `effort`: it does, as much as a word says. `budget`: only where a
    request gives it tokens for that. `adaptive`: as much as it finds right. `effort` is the least
    word that it takes; empty where it takes none. `temperature` is whether it takes one.
    """

    kind: Kind = "none"
    effort: str = ""
    temperature: bool = True


_NONE = Reasoning()
_LOW = Reasoning("effort", effort="low", temperature=False)
_ADAPTIVE = Reasoning("adaptive", temperature=False)

# By protocol: a whole name without vendor and snapshot, and how it reasons; the first that matches.
_RULES: dict[str, tuple[tuple[str, Reasoning], ...]] = {
    "openai": (
        (r"o1-(mini|preview)|gpt-5(\.\d+)?-pro", _ADAPTIVE),
        (r"(o1|o3|o4)(-mini|-pro)?|gpt-5(\.\d+)?(-mini|-nano|-codex(-mini|-max)?)?", _LOW),
        (r"gpt-oss(-\d+b|:\d+b)?(-cloud)?", _LOW),
        (r"gemini-2\.5-(pro|flash)", _LOW),
        (r"gemini-([3-9](\.\d+)?)-(pro|flash|flash-lite)", _LOW),
        (r"deepseek-reasoner|deepseek-r1.*", _ADAPTIVE),
        (r"deepseek-v4-(pro|flash)", _LOW),
        (r"kimi-k2-thinking(-turbo)?|kimi-k2\.[5-9].*", _ADAPTIVE),
        (r"kimi-k3.*", _LOW),
        (r"grok-(3-mini(-fast)?|4\.3|4\.20-multi-agent)", _LOW),
        (r"qwen3.*-thinking.*|qwq.*|magistral.*|minimax-m2.*", _ADAPTIVE),
        (r"claude-.*:thinking", _LOW),
    ),
    # Its models think only where a request says so; the newer ones know no budget, but an effort.
    "anthropic": (
        (r"claude-3-7-sonnet|claude-(opus|sonnet|haiku)-4(-[015])?", Reasoning("budget")),
        (r"claude-(opus|sonnet|haiku)-4-6", Reasoning("adaptive", effort="low")),
        (
            r"claude-(opus|sonnet|haiku)-4-[7-9]|claude-[a-z]+-[5-9](-\d)?",
            Reasoning("adaptive", effort="low", temperature=False),
        ),
    ),
}
_VENDOR = re.compile(r"(?:arn:.+/)?(?:.*/)?(?:(?:[a-z-]+\.)?(?:anthropic|amazon)\.)?")
_SNAPSHOT = re.compile(
    r"(-v\d+(:\d+)?|@.+|-latest|:(free|nitro|floor|exacto)"
    r"|-((preview|exp)-)?(\d{4}(-?\d{2}){0,2}|\d{2}-\d{2})|-(preview|exp))*\Z"
)


@cache
def find_reasoning(protocol: str, name: str) -> Reasoning:
    """Return how the model of this name reasons where it is served by this protocol."""
    vendor = _VENDOR.match(name)
    bare_name = name[vendor.end() if vendor else 0 :].lower()
    for pattern, reasoning in _RULES.get(protocol, ()):
        match = re.match(rf"(?:{pattern})(?={_SNAPSHOT.pattern})", bare_name)
        if match:
            return reasoning
    return _NONE
