"""How far a window slides over a conversation: a share of the oldest messages at a time.

For example, 20 messages may go and `fraction` is 0.5: the first step leaves out 10, the next one 4
(half of the remaining 10 is 5, rounded down to an even number), until the rest fits.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

MIN_MESSAGES = 5  # nothing is left out of a shorter conversation


def find_slide_index(
    cuts: Sequence[int],
    *,
    start: int,
    stop: int,
    length: int,
    fraction: float,
    fits: Callable[[int], bool],
) -> int:
    """Return the index of the first message that stays; `start` if none is left out.

    Of `length` messages those from `start` up to `stop` may go. Each step leaves out `fraction` of
    the rest, at least 2 and an even number, so that questions and answers go on alternating, until
    `fits` accepts what stays from an index on. Only `cuts` are used, which separate no pair; if
    none of them gives an even number, complete pairs come before even numbers.
    (NeuroLink, Stage 4: Sliding Window Truncation)
    """
    valid_cuts = [cut for cut in cuts if start < cut <= stop]
    if length < MIN_MESSAGES or not valid_cuts:
        return start
    index = start
    while index < valid_cuts[-1] and not fits(index):
        step = max(2, int((length - index) * fraction) // 2 * 2)
        index = _find_next_cut(valid_cuts, index, index + step)
    return index


def _find_next_cut(valid_cuts: Sequence[int], index: int, limit: int) -> int:
    """Return the last cut up to `limit` at an even distance, or the nearest other one.

    The others are the first cut after the limit if its distance is even, else the last cut of any
    distance.
    """
    begin = bisect_right(valid_cuts, index)
    end = bisect_right(valid_cuts, limit)
    choices = [*reversed(valid_cuts[begin:end]), *valid_cuts[end : end + 1]]
    return next((cut for cut in choices if (cut - index) % 2 == 0), choices[0])
