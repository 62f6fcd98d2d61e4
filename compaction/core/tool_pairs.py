"""Tool calls and their results: where messages may be separated.

Calls and results pair by id. Providers refuse a request with half of a pair, so no cut may separate
the two. For example, of the messages

    0 user   1 assistant (calls a, b)   2 result of a   3 result of b   4 assistant   5 user

the safe cuts are 0, 1, 4 and 5: before 2 and 3 a call would be cut from its result.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from compaction.core.transcript import TranscriptEntry
from textkit.tool_pairs import match_results

Pair = tuple[int, int]


def find_pairs(entries: Sequence[TranscriptEntry]) -> list[Pair]:
    """Return the indices (message with the call, result) of every result whose call is there.

    They are in the order of the results.
    """
    callers = match_results(
        ([call.id for call in entry.calls], entry.call_id if entry.role == "tool" else None)
        for entry in entries
    )
    return [(caller, index) for index, caller in enumerate(callers) if caller is not None]


def find_pending_call(entries: Sequence[TranscriptEntry]) -> int | None:
    """Return the index of the first message with a call that may still be answered, or None.

    Only the newest turn can have such calls. A call without a result in an earlier turn was
    interrupted: nothing will answer it.
    """
    turn_start = len(entries)
    while turn_start and entries[turn_start - 1].role != "user":
        turn_start -= 1
    turn = entries[turn_start:]
    answered_calls = {(caller, turn[result].call_id) for caller, result in find_pairs(turn)}
    for index, entry in enumerate(turn):
        if any((index, call.id) not in answered_calls for call in entry.calls):
            return turn_start + index
    return None


def find_safe_cuts(entries: Sequence[TranscriptEntry]) -> list[int]:
    """Return the indices before which the messages may be separated; 0 is always one of them.

    No cut separates a pair, comes before a tool result, or comes after a pending call.
    """
    if not entries:
        return []
    # How many pairs open minus how many close at each index.
    changes = [0] * (len(entries) + 1)
    for caller, result in find_pairs(entries):
        changes[caller + 1] += 1
        changes[result + 1] -= 1
    pending_index = find_pending_call(entries)
    end = len(entries) if pending_index is None else pending_index + 1
    open_pair_counts = list(accumulate(changes))
    later_cuts = [
        index
        for index in range(1, end)
        if not open_pair_counts[index] and entries[index].role != "tool"
    ]
    return [0, *later_cuts]


def split_entries(entries: Sequence[TranscriptEntry]) -> list[Sequence[TranscriptEntry]]:
    """Return the entries in the smallest pieces that may be separated."""
    if not entries:
        return []
    cuts = find_safe_cuts(entries)
    return [entries[start:end] for start, end in pairwise([*cuts, len(entries)])]


def find_piece(
    entries: Sequence[TranscriptEntry], cuts: Sequence[int], index: int
) -> Sequence[TranscriptEntry]:
    """Return the messages that cannot be separated from the one at an index, and that one."""
    place = bisect_right(cuts, index)
    end = cuts[place] if place < len(cuts) else len(entries)
    return entries[cuts[place - 1] : end]
