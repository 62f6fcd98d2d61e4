"""What must hold after a pass, whatever the policy; an outcome that breaks one is not installed."""

from dataclasses import replace

from compaction.core.outcome import Outcome
from compaction.core.tool_pairs import pairs
from compaction.core.transcript import Entry, Transcript


def violations(before: Transcript, outcome: Outcome) -> list[str]:
    """Every invariant that an outcome breaks against the transcript it was made from, one sentence each; none is the normal case."""
    if outcome.status != "applied":
        same = outcome.boundary_seq is None and outcome.summary == before.summary and not outcome.edits
        return [] if same else [f"A {outcome.status} outcome changes the context."]
    checks = (_summary, _boundary, _tail, _originals, _pairs, _tokens)
    return [complaint for check in checks if (complaint := check(before, outcome))]


def _summary(before: Transcript, outcome: Outcome) -> str:
    needed = bool(outcome.messages_compacted)
    return "The summary is empty." if needed and not (outcome.summary or "").strip() else ""


def _boundary(before: Transcript, outcome: Outcome) -> str:
    if outcome.boundary_seq is None:
        return ""
    first = next((entry for entry in before.entries if entry.seq == outcome.boundary_seq), None)
    if first is None:
        return f"The boundary {outcome.boundary_seq} is no message of the transcript."
    if first.role == "tool":
        return f"The first message kept, {first.seq}, is a tool result."
    return "The boundary did not move forward." if outcome.messages_compacted and first is before.entries[0] else ""


def _tail(before: Transcript, outcome: Outcome) -> str:
    boundary = outcome.boundary_seq or 0
    expected = [entry.seq for entry in before.entries if entry.seq >= boundary or entry.seq in outcome.kept_verbatim]
    if [entry.seq for entry in outcome.kept] != expected:
        return "The messages from the boundary on are not all kept, once each and in order."
    touched = [edit.seq for edit in outcome.edits if edit.seq >= boundary]
    return f"Messages of the protected tail are edited: {touched}." if touched else ""


def _originals(before: Transcript, outcome: Outcome) -> str:
    originals = {entry.seq: entry for entry in before.entries}
    changed = [kept.seq for kept in outcome.kept if not _same(kept, originals.get(kept.seq))]
    return f"Kept messages are not the originals: {changed}." if changed else ""


def _same(kept: Entry, original: Entry | None) -> bool:
    return kept is original or (original is not None and kept == replace(original, tokens=original.tokens or kept.tokens))


def _pairs(before: Transcript, outcome: Outcome) -> str:
    kept = {entry.seq for entry in outcome.kept}
    ends = [(before.entries[call].seq, before.entries[result].seq) for call, result in pairs(before.entries)]
    split = [pair for pair in ends if (pair[0] in kept) != (pair[1] in kept)]
    return f"Tool calls are separated from their results: {split}." if split else ""


def _tokens(before: Transcript, outcome: Outcome) -> str:
    if outcome.tokens_after < outcome.tokens_before:
        return ""
    return f"The context is not smaller: {outcome.tokens_before} tokens before, {outcome.tokens_after} after."
