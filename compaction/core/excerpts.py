"""Cut a text to a number of tokens, at the end of a sentence or of a word."""

import re
from bisect import bisect_right

from compaction.core.counting import build_counter
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS

ELLIPSIS = "..."
MIN_SHARE = 0.5  # a nicer end may cost up to half of what would fit

_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_SPACE = re.compile(r"\s")


def truncate_to_token_budget(
    text: str, max_tokens: int, provider: str = "", *, policy: Policy = PRESETS["neurolink"]
) -> tuple[str, bool]:
    """Return the text, or as much of its beginning as fits with "..." after it, and if it was cut.

    `provider` is the model's family. Returns an empty text if not even the dots fit.
    (NeuroLink, truncateToTokenBudget)
    """
    token_counter = build_counter(policy, provider)
    if token_counter.count_text(text) <= max_tokens:
        return text, False

    def count_prefix(length: int) -> int:
        return token_counter.count_text(text[:length] + ELLIPSIS)

    # The count grows with the length, so a binary search finds the longest beginning that fits.
    max_length = bisect_right(range(len(text) + 1), max_tokens, key=count_prefix) - 1
    if max_length < 0:
        return "", True
    return text[: _find_nice_end(text, max_length)].rstrip() + ELLIPSIS, True


def _find_nice_end(text: str, max_length: int) -> int:
    """Return where to cut: after a sentence, else before a space, else at the maximum."""
    min_length = int(max_length * MIN_SHARE)
    sentence_ends = [match.end() for match in _SENTENCE_END.finditer(text, min_length, max_length)]
    if sentence_ends:
        return sentence_ends[-1]
    if max_length < len(text) and text[max_length].isspace():
        return max_length
    spaces = [match.start() for match in _SPACE.finditer(text, min_length, max_length)]
    return spaces[-1] if spaces and spaces[-1] else max_length
