"""How far a window slides over a conversation: a share of the oldest messages at a time, an even number, no pair parted."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

FEWEST = 5  # messages; a shorter conversation is not slid over


def slide_to(
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
    allowed = [cut for cut in cuts if start < cut <= stop]
    place = start
    while length >= FEWEST and allowed and place < allowed[-1] and not fits(place):
        place = _next(allowed, place, place + max(2, int((length - place) * fraction) // 2 * 2))
    return place


def _next(allowed: Sequence[int], place: int, wanted: int) -> int:
    """The last even place up to the one wanted, else an even one right after it, else the last one of any kind."""
    end = bisect_right(allowed, wanted)
    choices = [*reversed(allowed[bisect_right(allowed, place) : end]), *allowed[end : end + 1]]
    return next((cut for cut in choices if (cut - place) % 2 == 0), choices[0])
