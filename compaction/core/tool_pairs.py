"""Tool calls and their results, which pair by id: where messages may be parted, and what stands in for a half that is gone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from compaction.core.transcript import TranscriptCall, TranscriptEntry

Pair = tuple[int, int]
NO_RESULT = "[Tool result unavailable - conversation was compacted]"
NO_CALL = "[Tool call for {tool} - conversation was compacted]"


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRepair:
    """Messages in which every call has its result and every result its call, and how many of each were without."""

    entries: tuple[TranscriptEntry, ...]
    calls_fixed: int = 0
    results_fixed: int = 0


def find_pairs(entries: Sequence[TranscriptEntry]) -> list[Pair]:
    """(index of the call's message, index of the result) for every result that has its call; an id used again means the newest call."""
    matches: list[Pair] = []
    callers: dict[str, int] = {}
    for index, entry in enumerate(entries):
        callers.update((call.id, index) for call in entry.calls)
        if entry.role == "tool" and entry.call_id in callers:
            matches.append((callers[entry.call_id], index))
    return matches


def find_pending_call(entries: Sequence[TranscriptEntry]) -> int | None:
    """The index of the first message with a call that may still be answered: one without its result, in the turn that is still open.

    A call left without result in an earlier turn was interrupted; nothing will answer it, and it holds nothing back.
    """
    answered_calls = {(caller, entries[result].call_id) for caller, result in find_pairs(entries)}
    first_index: int | None = None
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if entry.role == "user":
            break
        if any((index, call.id) not in answered_calls for call in entry.calls):
            first_index = index
    return first_index


def find_safe_cuts(entries: Sequence[TranscriptEntry]) -> list[int]:
    """The indices that may be the first kept, 0 included: no pair is split, no result comes first, no pending call is cut off."""
    steps = [0] * (len(entries) + 1)
    for caller, result in find_pairs(entries):
        steps[caller + 1] += 1
        steps[result + 1] -= 1
    pending_index = find_pending_call(entries)
    open_pairs = accumulate(steps)
    return [
        index
        for index, entry in enumerate(entries)
        if (
            next(open_pairs) == 0
            and entry.role != "tool"
            and (pending_index is None or index <= pending_index)
        )
        or index == 0
    ]


def split_entries(entries: Sequence[TranscriptEntry]) -> list[Sequence[TranscriptEntry]]:
    """The entries in the smallest pieces that may be parted."""
    return split_at_cuts(entries, find_safe_cuts(entries))


def split_at_cuts(
    entries: Sequence[TranscriptEntry], cuts: Sequence[int]
) -> list[Sequence[TranscriptEntry]]:
    """The entries, parted at all of these places."""
    return [entries[start:end] for start, end in pairwise([*cuts, len(entries)])] if cuts else []


def repair(entries: Sequence[TranscriptEntry]) -> PairRepair:
    """Put a placeholder beside each half of a pair whose other half is gone (NeuroLink, Tool Pair Repair); by id, like all pairing here.

    A call that may still be answered counts as unanswered too: what is repaired is about to be sent. A second result of one call is a
    result without a call. A placeholder has the seq of the message it stands beside.
    """
    results_by_call: dict[tuple[int, str], int] = {}
    for caller, result in find_pairs(entries):
        results_by_call.setdefault((caller, entries[result].call_id), result)
    result_indices = set(results_by_call.values())
    output_entries: list[TranscriptEntry] = []
    calls_fixed = results_fixed = 0
    for index, entry in enumerate(entries):
        if entry.role == "tool" and index not in result_indices:
            output_entries += _add_call(entry)
            results_fixed += 1
            continue
        open_calls = [call for call in entry.calls if (index, call.id) not in results_by_call]
        output_entries += [entry, *(_build_result(call, entry) for call in open_calls)]
        calls_fixed += len(open_calls)
    return PairRepair(
        entries=tuple(output_entries), calls_fixed=calls_fixed, results_fixed=results_fixed
    )


def _build_result(call: TranscriptCall, entry: TranscriptEntry) -> TranscriptEntry:
    return TranscriptEntry(
        seq=entry.seq, role="tool", content=NO_RESULT, call_id=call.id, tool_name=call.name
    )


def _add_call(entry: TranscriptEntry) -> tuple[TranscriptEntry, TranscriptEntry]:
    tool_name, call_id = entry.tool_name or "a tool", entry.call_id or f"call_{entry.seq}"
    call = TranscriptCall(id=call_id, name=entry.tool_name or "unknown", arguments="{}")
    call_entry = TranscriptEntry(
        seq=entry.seq, role="assistant", content=NO_CALL.format(tool=tool_name), calls=(call,)
    )
    return call_entry, replace(entry, call_id=call_id)
