"""A text cut to a number of tokens, where a sentence or a word ends."""

import re
from bisect import bisect_right

from compaction.core.counting import counter
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS

ELLIPSIS = "..."
AT_LEAST = 0.5  # of what would fit: for a nicer end no more than half is given up

_SENTENCE = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_SPACE = re.compile(r"\s")


def truncate_to_token_budget(
    text: str, max_tokens: int, provider: str = "", *, policy: Policy = PRESETS["neurolink"]
) -> tuple[str, bool]:
    """The text, or as much of its beginning as takes at most `max_tokens` with "..." after it; and whether it was cut.

    Nothing at all where not even the dots fit. NeuroLink, truncateToTokenBudget.
    """
    count = counter(policy, provider)
    if count.text(text) <= max_tokens:
        return text, False
    fits = (
        bisect_right(
            range(len(text) + 1),
            max_tokens,
            key=lambda length: count.text(text[:length] + ELLIPSIS),
        )
        - 1
    )
    if fits < 0:
        return "", True
    return text[: _nice_end(text, fits)].rstrip() + ELLIPSIS, True


def _nice_end(text: str, fits: int) -> int:
    """Where to cut at the latest at `fits`: after a sentence, else before a space, else right there."""
    least = int(fits * AT_LEAST)
    sentences = [found.end() for found in _SENTENCE.finditer(text, least, fits)]
    if sentences:
        return sentences[-1]
    if fits < len(text) and text[fits].isspace():
        return fits
    spaces = [found.start() for found in _SPACE.finditer(text, least, fits)]
    return spaces[-1] if spaces and spaces[-1] else fits
