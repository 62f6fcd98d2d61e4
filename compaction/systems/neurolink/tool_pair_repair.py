"""Complete broken pairs of tool calls and results, for programs that send requests themselves.

Chatcore's own requests are completed by `chatcore/providers/normal_form.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.core.tool_pairs import find_pairs
from compaction.core.transcript import TranscriptCall, TranscriptEntry
from textkit.tool_pairs import CALL_COMPACTED, RESULT_COMPACTED


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRepair:
    """Messages in which every pair is complete, and how many halves were added."""

    entries: tuple[TranscriptEntry, ...]
    calls_fixed: int = 0
    results_fixed: int = 0


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
