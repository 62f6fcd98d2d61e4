"""How far a window slides over a conversation: a share of the oldest messages at a time, an even number, no pair parted."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

MIN_MESSAGES = 5  # messages; a shorter conversation is not slid over


def find_slide_index(
    cuts: Sequence[int],
    *,
    start: int,
    stop: int,
    length: int,
    fraction: float,
    fits: Callable[[int], bool],
) -> int:
    """The index of the first message kept after those that stay; `start` when nothing goes.

    Of `length` messages those from `start` on may go, up to `stop` at most. Each step leaves out `fraction` of what is left, at least 2
    and an even number, so that roles go on alternating (NeuroLink, Stage 4), until `fits` says that what stays from an index on does.
    `cuts` are the places where no pair is parted; where none of them makes an even number, whole pairs come before even numbers.
    """
    valid_cuts = [cut for cut in cuts if start < cut <= stop]
    index = start
    while length >= MIN_MESSAGES and valid_cuts and index < valid_cuts[-1] and not fits(index):
        index = _find_next_cut(
            valid_cuts, index, index + max(2, int((length - index) * fraction) // 2 * 2)
        )
    return index


def _find_next_cut(valid_cuts: Sequence[int], index: int, limit: int) -> int:
    """The last even place up to the one wanted, else an even one right after it, else the last one of any kind."""
    end = bisect_right(valid_cuts, limit)
    choices = [
        *reversed(valid_cuts[bisect_right(valid_cuts, index) : end]),
        *valid_cuts[end : end + 1],
    ]
    return next((cut for cut in choices if (cut - index) % 2 == 0), choices[0])
