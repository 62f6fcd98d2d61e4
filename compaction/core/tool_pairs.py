"""Which places between messages are safe to cut: never between a tool call and its results, which pair by id."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from compaction.core.transcript import Entry

Pair = tuple[int, int]


def pairs(entries: Sequence[Entry]) -> list[Pair]:
    """(index of the call's message, index of the result) for every result that has its call; an id used again means the newest call."""
    found: list[Pair] = []
    callers: dict[str, int] = {}
    for index, entry in enumerate(entries):
        callers.update((call.id, index) for call in entry.calls)
        if entry.role == "tool" and entry.call_id in callers:
            found.append((callers[entry.call_id], index))
    return found


def pending(entries: Sequence[Entry]) -> int | None:
    """The index of the first message with a call that may still be answered: one without its result, in the turn that is still open.

    A call left without result in an earlier turn was interrupted; nothing will answer it, and it holds nothing back.
    """
    answered = {(caller, entries[result].call_id) for caller, result in pairs(entries)}
    first: int | None = None
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if entry.role == "user":
            break
        if any((index, call.id) not in answered for call in entry.calls):
            first = index
    return first


def safe_cuts(entries: Sequence[Entry]) -> list[int]:
    """The indices that may be the first kept, 0 included: no pair is split, no result comes first, no pending call is cut off."""
    steps = [0] * (len(entries) + 1)
    for caller, result in pairs(entries):
        steps[caller + 1] += 1
        steps[result + 1] -= 1
    last = pending(entries)
    open_pairs = accumulate(steps)
    return [
        index
        for index, entry in enumerate(entries)
        if (next(open_pairs) == 0 and entry.role != "tool" and (last is None or index <= last)) or index == 0
    ]


def groups(entries: Sequence[Entry]) -> list[Sequence[Entry]]:
    """The entries in the smallest pieces that may be parted."""
    return pieces(entries, safe_cuts(entries))


def pieces(entries: Sequence[Entry], cuts: Sequence[int]) -> list[Sequence[Entry]]:
    """The entries, parted at all of these places."""
    return [entries[start:end] for start, end in pairwise([*cuts, len(entries)])] if cuts else []
