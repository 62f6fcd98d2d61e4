"""Understand the words in which providers say why an answer ended."""

import re
from typing import Literal

from chatcore.providers.base import EndReason

# In the spelling of `_normalize`. (OpenAI, Anthropic, Gemini, Mistral, Cohere, Bedrock, TGI)
_REASONS: dict[str, EndReason] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "end": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "complete": "stop",
    "completed": "stop",
    "finish": "stop",
    "finished": "stop",
    "done": "stop",
    "length": "length",
    # The answer was not filtered, because the filter failed: nobody knows whether it is whole.
    "content_filter_error": "unknown",
}
# What the words of other servers have in them, in the order in which they are tried: a
# "malformed_tool_use" is no call, and "resource" stands in the name of a breakdown.
_PARTS: tuple[tuple[Literal["broken"] | EndReason, str], ...] = (
    ("broken", r"error(?!_toxic)|fail|abort|cancel|malformed|unexpected|timeout|timed_out"
     r"|interrupt|insufficient|unavailable|overload|disconnect"),
    ("refusal", r"filter|safety|sensitive|refus|policy|guardrail|prohibit|block|moderat|recitation"
     r"|toxic|spii|language"),
    ("length", r"length|max|limit|window|too_long|truncat|pause"),
    ("tool_calls", r"tool|function"),
)  # fmt: skip


def classify_end(word: str) -> EndReason | Literal["broken"]:
    """Return why an answer ended, or "broken" if its provider could not finish it.

    A word that nothing is known of is "unknown": such an answer is never taken for a whole one.
    """
    key = re.sub(r"[^a-z0-9]+", "_", word.lower()).strip("_")
    if key in _REASONS:
        return _REASONS[key]
    for reason, pattern in _PARTS:
        if re.search(pattern, key):
            return reason
    return "unknown"
