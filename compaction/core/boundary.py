"""Where the protected tail begins: the newest messages that fit in a number of tokens.

A tail begins only at a safe cut (`tool_pairs.find_safe_cuts`), never between a tool call and its
result. For example, 2,048 protected tokens and messages of 500, 700, 900 and 600 tokens, oldest
first: 600 + 900 fit, 600 + 900 + 700 do not, so the tail begins at the message of 900.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from compaction.core.transcript import TranscriptEntry


def find_start_within(
    entries: Sequence[TranscriptEntry], cuts: Sequence[int], tokens: int, token_ratio: float = 1.0
) -> int:
    """Return the oldest cut from which everything fits in so many real tokens.

    Returns the newest cut if not even that fits.
    """
    if not cuts:
        return 0
    earliest = _find_first_fitting(entries, tokens, token_ratio)
    return cuts[min(bisect_left(cuts, earliest), len(cuts) - 1)]


def limit_start(
    entries: Sequence[TranscriptEntry], cuts: Sequence[int], start: int, up_to_seq: int | None
) -> int:
    """Return the newest cut up to `start` before which no message is newer than `up_to_seq`."""
    if up_to_seq is None or not start:
        return start
    newer_index = bisect_right(entries, up_to_seq, key=lambda entry: entry.seq)
    return find_last_cut(cuts, min(start, newer_index))


def find_last_cut(cuts: Sequence[int], index: int) -> int:
    """Return the newest cut up to an index, or 0."""
    place = bisect_right(cuts, index)
    return cuts[place - 1] if place else 0


def _find_first_fitting(
    entries: Sequence[TranscriptEntry], protected_tokens: int, token_ratio: float
) -> int:
    """Return the index from which everything fits, whether it is a cut or not."""
    total = 0
    for index in range(len(entries) - 1, -1, -1):
        total += entries[index].tokens
        if total * token_ratio > protected_tokens:
            return index + 1
    return 0
