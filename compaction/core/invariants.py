"""What holds after every pass, whatever the policy. An outcome that breaks one is not installed."""

from dataclasses import replace

from compaction.core.outcome import Outcome
from compaction.core.tool_pairs import find_pairs
from compaction.core.transcript import Transcript, TranscriptEdit, TranscriptEntry


def find_violations(transcript: Transcript, outcome: Outcome) -> list[str]:
    """Return one sentence for every invariant that an outcome breaks; normally none.

    `transcript` is the one from which the outcome was made.
    """
    # An outcome that is not applied must leave the context as it was.
    if not outcome.is_applied:
        is_unchanged = (
            outcome.boundary_seq is None
            and outcome.summary == transcript.summary
            and not outcome.edits
        )
        return [] if is_unchanged else [f"A {outcome.status} outcome changes the context."]
    checks = (
        _check_summary,
        _check_boundary,
        _check_tail,
        _check_edits,
        _check_originals,
        _check_pairs,
        _check_tokens,
    )
    complaints = (check(transcript, outcome) for check in checks)
    return [complaint for complaint in complaints if complaint]


def _check_summary(transcript: Transcript, outcome: Outcome) -> str:
    # A summary or a marker must tell the model that messages are gone.
    is_shorter = len(outcome.entries) < len(transcript.entries)
    has_notice = bool((outcome.summary or "").strip()) or bool(outcome.marker)
    return "The summary is empty." if is_shorter and not has_notice else ""


def _check_boundary(transcript: Transcript, outcome: Outcome) -> str:
    boundary = outcome.boundary_seq
    if boundary == transcript.boundary_seq:
        return ""
    first_entry = next((entry for entry in transcript.entries if entry.seq == boundary), None)
    if boundary is None or boundary < (transcript.boundary_seq or 0):
        return f"The boundary moved back, from {transcript.boundary_seq} to {boundary}."
    if first_entry is None:
        return f"The boundary {boundary} is not a message of the transcript."
    if first_entry.role == "tool":
        return f"The first message kept, {first_entry.seq}, is a tool result."
    return "The boundary did not move forward." if first_entry is transcript.entries[0] else ""


def _check_tail(transcript: Transcript, outcome: Outcome) -> str:
    boundary = outcome.boundary_seq or 0
    exempt_seqs = frozenset(outcome.exempt_seqs)
    expected_seqs = [
        entry.seq
        for entry in transcript.entries
        if entry.seq >= boundary or entry.seq in exempt_seqs
    ]
    if [entry.seq for entry in outcome.entries] != expected_seqs:
        return "The messages from the boundary on are not all kept, once each and in order."
    pinned_seqs = [entry.seq for entry in transcript.entries if entry.pinned]
    missing_seqs = sorted(set(pinned_seqs).difference(expected_seqs))
    return f"Pinned messages are gone: {missing_seqs}." if missing_seqs else ""


def _check_edits(transcript: Transcript, outcome: Outcome) -> str:
    pinned_seqs = {entry.seq for entry in transcript.entries if entry.pinned}
    tool_seqs = {entry.seq for entry in transcript.entries if entry.role == "tool"}

    def is_forbidden(edit: TranscriptEdit) -> bool:
        if edit.seq in pinned_seqs:
            return True
        # Images of tool results go wherever they stand.
        loses_images = edit.kind == "images_stripped" and edit.seq in tool_seqs
        return edit.seq in outcome.protected_seqs and not loses_images

    forbidden_seqs = [edit.seq for edit in outcome.edits if is_forbidden(edit)]
    return f"Protected messages are edited: {forbidden_seqs}." if forbidden_seqs else ""


def _check_originals(transcript: Transcript, outcome: Outcome) -> str:
    # Every message that stays is the original, or the original with its one edit.
    originals = {entry.seq: entry for entry in transcript.entries}
    edits = {edit.seq: edit for edit in outcome.edits}
    altered_seqs = [
        remaining_entry.seq
        for remaining_entry in outcome.entries
        if not _is_same(
            remaining_entry,
            originals.get(remaining_entry.seq),
            edits.pop(remaining_entry.seq, None),
        )
    ]
    # Every edit was taken out above; what is left belongs to a message that is gone, and a seq that
    # occurs twice has two edits for one message.
    if edits or len({edit.seq for edit in outcome.edits}) < len(outcome.edits):
        return f"Edits are not of one kept message each: {[edit.seq for edit in outcome.edits]}."
    return f"Kept messages are not the originals: {altered_seqs}." if altered_seqs else ""


def _is_same(
    entry: TranscriptEntry, original: TranscriptEntry | None, edit: TranscriptEdit | None
) -> bool:
    if original is None:
        return False
    if edit is None:
        # The pass counts messages that came without a count, and changes nothing else.
        return entry is original or entry == replace(
            original, tokens=original.tokens or entry.tokens
        )
    stored_text = original.content if original.original is None else original.original
    return entry == replace(
        original, content=edit.replacement, original=stored_text, images=0, tokens=entry.tokens
    )


def _check_pairs(transcript: Transcript, outcome: Outcome) -> str:
    remaining_seqs = {entry.seq for entry in outcome.entries}
    pair_seqs = [
        (transcript.entries[caller].seq, transcript.entries[result].seq)
        for caller, result in find_pairs(transcript.entries)
    ]
    split_pairs = [
        (caller_seq, result_seq)
        for caller_seq, result_seq in pair_seqs
        if (caller_seq in remaining_seqs) != (result_seq in remaining_seqs)
    ]
    return f"Tool calls are separated from their results: {split_pairs}." if split_pairs else ""


def _check_tokens(transcript: Transcript, outcome: Outcome) -> str:
    if outcome.tokens_after < outcome.tokens_before:
        return ""
    return (
        f"The context is not smaller: {outcome.tokens_before} tokens before, "
        f"{outcome.tokens_after} after."
    )
