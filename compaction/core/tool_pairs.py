"""Tool calls and their results: where messages may be separated, and how broken pairs are repaired.

Calls and results pair by id. Providers refuse a request with half of a pair, so no cut may separate
the two. For example, of the messages

    0 user   1 assistant (calls a, b)   2 result of a   3 result of b   4 assistant   5 user

the safe cuts are 0, 1, 4 and 5: before 2 and 3 a call would be cut from its result.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from compaction.core.transcript import TranscriptCall, TranscriptEntry
from textkit.tool_pairs import CALL_COMPACTED, RESULT_COMPACTED, match_results

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRepair:
    """Messages in which every pair is complete, and how many halves were added."""

    entries: tuple[TranscriptEntry, ...]
    calls_fixed: int = 0
    results_fixed: int = 0


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


def repair(entries: Sequence[TranscriptEntry]) -> PairRepair:
    """Add a placeholder for each half of a pair whose other half is missing.

    A pending call gets one too, because what is repaired is about to be sent. A second result of
    one call is a result without a call. A placeholder has the seq of the message beside it.
    """
    pairs = find_pairs(entries)
    answered_calls = {(caller, entries[result].call_id) for caller, result in pairs}
    result_indices = {result for _, result in pairs}
    output_entries: list[TranscriptEntry] = []
    calls_fixed = 0
    results_fixed = 0
    for index, entry in enumerate(entries):
        if entry.role == "tool" and index not in result_indices:
            output_entries += _add_call(entry)
            results_fixed += 1
            continue
        open_calls = [call for call in entry.calls if (index, call.id) not in answered_calls]
        output_entries.append(entry)
        output_entries += [_build_result(call, entry) for call in open_calls]
        calls_fixed += len(open_calls)
    return PairRepair(
        entries=tuple(output_entries), calls_fixed=calls_fixed, results_fixed=results_fixed
    )


def _build_result(call: TranscriptCall, entry: TranscriptEntry) -> TranscriptEntry:
    return TranscriptEntry(
        seq=entry.seq, role="tool", content=RESULT_COMPACTED, call_id=call.id, tool_name=call.name
    )


def _add_call(entry: TranscriptEntry) -> tuple[TranscriptEntry, TranscriptEntry]:
    """Return a message with a call for a result that has none, and the result."""
    call_id = entry.call_id or f"call_{entry.seq}"
    call = TranscriptCall(id=call_id, name=entry.tool_name or "unknown", arguments="{}")
    call_entry = TranscriptEntry(
        seq=entry.seq,
        role="assistant",
        content=CALL_COMPACTED.format(tool=entry.tool_name or "a tool"),
        calls=(call,),
    )
    return call_entry, replace(entry, call_id=call_id)
