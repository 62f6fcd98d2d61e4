"""What must hold after a pass, whatever the policy; an outcome that breaks one is not installed."""

from dataclasses import replace

from compaction.core.outcome import Outcome
from compaction.core.tool_pairs import pairs
from compaction.core.transcript import Edit, Entry, Transcript


def violations(before: Transcript, outcome: Outcome) -> list[str]:
    """Every invariant that an outcome breaks against the transcript it was made from, one sentence each; none is the normal case."""
    if outcome.status != "applied":
        same = (
            outcome.boundary_seq is None and outcome.summary == before.summary and not outcome.edits
        )
        return [] if same else [f"A {outcome.status} outcome changes the context."]
    checks = (_summary, _boundary, _tail, _edits, _originals, _pairs, _tokens)
    return [complaint for check in checks if (complaint := check(before, outcome))]


def _summary(before: Transcript, outcome: Outcome) -> str:
    """What is gone is told of: by a summary, or by the marker of messages left out."""
    gone = len(outcome.kept) < len(before.entries)
    told = bool((outcome.summary or "").strip()) or bool(outcome.marker)
    return "The summary is empty." if gone and not told else ""


def _boundary(before: Transcript, outcome: Outcome) -> str:
    boundary = outcome.boundary_seq
    if boundary == before.boundary_seq:
        return ""
    first = next((entry for entry in before.entries if entry.seq == boundary), None)
    if boundary is None or boundary < (before.boundary_seq or 0):
        return f"The boundary moved back, from {before.boundary_seq} to {boundary}."
    if first is None:
        return f"The boundary {boundary} is no message of the transcript."
    if first.role == "tool":
        return f"The first message kept, {first.seq}, is a tool result."
    return "The boundary did not move forward." if first is before.entries[0] else ""


def _tail(before: Transcript, outcome: Outcome) -> str:
    boundary = outcome.boundary_seq or 0
    expected = [
        entry.seq
        for entry in before.entries
        if entry.seq >= boundary or entry.seq in outcome.kept_verbatim
    ]
    if [entry.seq for entry in outcome.kept] != expected:
        return "The messages from the boundary on are not all kept, once each and in order."
    pinned = [entry.seq for entry in before.entries if entry.pinned]
    lost = sorted(set(pinned).difference(expected))
    return f"Pinned messages are gone: {lost}." if lost else ""


def _edits(before: Transcript, outcome: Outcome) -> str:
    pinned = {entry.seq for entry in before.entries if entry.pinned}
    touched = [
        edit.seq for edit in outcome.edits if edit.seq in outcome.untouched or edit.seq in pinned
    ]
    return f"Protected messages are edited: {touched}." if touched else ""


def _originals(before: Transcript, outcome: Outcome) -> str:
    """A message kept is the one that was, or what its one edit makes of it."""
    originals = {entry.seq: entry for entry in before.entries}
    edits = {edit.seq: edit for edit in outcome.edits}
    changed = [
        kept.seq
        for kept in outcome.kept
        if not _same(kept, originals.get(kept.seq), edits.pop(kept.seq, None))
    ]
    if edits or len({edit.seq for edit in outcome.edits}) < len(outcome.edits):
        return f"Edits are not of one kept message each: {[edit.seq for edit in outcome.edits]}."
    return f"Kept messages are not the originals: {changed}." if changed else ""


def _same(kept: Entry, original: Entry | None, edit: Edit | None) -> bool:
    if original is None or edit is None:
        return kept is original or (
            original is not None
            and kept == replace(original, tokens=original.tokens or kept.tokens)
        )
    stored = original.content if original.original is None else original.original
    return kept == replace(
        original, content=edit.replacement, original=stored, images=0, tokens=kept.tokens
    )


def _pairs(before: Transcript, outcome: Outcome) -> str:
    kept = {entry.seq for entry in outcome.kept}
    ends = [
        (before.entries[call].seq, before.entries[result].seq)
        for call, result in pairs(before.entries)
    ]
    split = [pair for pair in ends if (pair[0] in kept) != (pair[1] in kept)]
    return f"Tool calls are separated from their results: {split}." if split else ""


def _tokens(before: Transcript, outcome: Outcome) -> str:
    if outcome.tokens_after < outcome.tokens_before:
        return ""
    return f"The context is not smaller: {outcome.tokens_before} tokens before, {outcome.tokens_after} after."
