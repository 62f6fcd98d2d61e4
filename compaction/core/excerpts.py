"""A text cut to a number of tokens, where a sentence or a word ends."""

import re
from bisect import bisect_right

from compaction.core.counting import build_counter
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS

ELLIPSIS = "..."
MIN_SHARE = 0.5  # of what would fit: for a nicer end no more than half is given up

_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_SPACE = re.compile(r"\s")


def truncate_to_token_budget(
    text: str, max_tokens: int, provider: str = "", *, policy: Policy = PRESETS["neurolink"]
) -> tuple[str, bool]:
    """The text, or as much of its beginning as takes at most `max_tokens` with "..." after it; and whether it was cut.

    Nothing at all where not even the dots fit. NeuroLink, truncateToTokenBudget.
    """
    token_counter = build_counter(policy, provider)
    if token_counter.count_text(text) <= max_tokens:
        return text, False
    max_length = (
        bisect_right(
            range(len(text) + 1),
            max_tokens,
            key=lambda length: token_counter.count_text(text[:length] + ELLIPSIS),
        )
        - 1
    )
    if max_length < 0:
        return "", True
    return text[: _find_nice_end(text, max_length)].rstrip() + ELLIPSIS, True


def _find_nice_end(text: str, max_length: int) -> int:
    """Where to cut at the latest at `fits`: after a sentence, else before a space, else right there."""
    min_length = int(max_length * MIN_SHARE)
    sentence_ends = [match.end() for match in _SENTENCE_END.finditer(text, min_length, max_length)]
    if sentence_ends:
        return sentence_ends[-1]
    if max_length < len(text) and text[max_length].isspace():
        return max_length
    spaces = [match.start() for match in _SPACE.finditer(text, min_length, max_length)]
    return spaces[-1] if spaces and spaces[-1] else max_length
