"""Tool calls and their results, which pair by id: where messages may be parted, and what stands in for a half that is gone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from compaction.core.transcript import Call, Entry

Pair = tuple[int, int]
NO_RESULT = "[Tool result unavailable - conversation was compacted]"
NO_CALL = "[Tool call for {tool} - conversation was compacted]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Repaired:
    """Messages in which every call has its result and every result its call, and how many of each were without."""

    entries: tuple[Entry, ...]
    calls_fixed: int = 0
    results_fixed: int = 0


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
        if (next(open_pairs) == 0 and entry.role != "tool" and (last is None or index <= last))
        or index == 0
    ]


def groups(entries: Sequence[Entry]) -> list[Sequence[Entry]]:
    """The entries in the smallest pieces that may be parted."""
    return pieces(entries, safe_cuts(entries))


def pieces(entries: Sequence[Entry], cuts: Sequence[int]) -> list[Sequence[Entry]]:
    """The entries, parted at all of these places."""
    return [entries[start:end] for start, end in pairwise([*cuts, len(entries)])] if cuts else []


def repair(entries: Sequence[Entry]) -> Repaired:
    """Put a placeholder beside each half of a pair whose other half is gone (NeuroLink, Tool Pair Repair); by id, like all pairing here.

    A call that may still be answered counts as unanswered too: what is repaired is about to be sent. A second result of one call is a
    result without a call. A placeholder has the seq of the message it stands beside.
    """
    answered: dict[tuple[int, str], int] = {}
    for caller, result in pairs(entries):
        answered.setdefault((caller, entries[result].call_id), result)
    paired = set(answered.values())
    made: list[Entry] = []
    calls = results = 0
    for index, entry in enumerate(entries):
        if entry.role == "tool" and index not in paired:
            made += _with_call(entry)
            results += 1
            continue
        unanswered = [call for call in entry.calls if (index, call.id) not in answered]
        made += [entry, *(_result_of(call, entry) for call in unanswered)]
        calls += len(unanswered)
    return Repaired(entries=tuple(made), calls_fixed=calls, results_fixed=results)


def _result_of(call: Call, entry: Entry) -> Entry:
    return Entry(
        seq=entry.seq, role="tool", content=NO_RESULT, call_id=call.id, tool_name=call.name
    )


def _with_call(entry: Entry) -> tuple[Entry, Entry]:
    tool, name = entry.tool_name or "a tool", entry.call_id or f"call_{entry.seq}"
    call = Call(id=name, name=entry.tool_name or "unknown", arguments="{}")
    asking = Entry(
        seq=entry.seq, role="assistant", content=NO_CALL.format(tool=tool), calls=(call,)
    )
    return asking, replace(entry, call_id=name)
