"""What became of each message in a pass, for people to read."""

from typing import cast

from compaction.core.outcome import MessageOutcome, Method
from compaction.core.stages.base import ContextDraft
from compaction.core.transcript import Transcript, TranscriptEntry

MAX_TARGETS = 200


def list_targets(original: Transcript, draft: ContextDraft) -> tuple[MessageOutcome, ...]:
    """One for each message that was changed or is gone, in order; of more than 200 the largest (Wolffish, Compaction Cards)."""
    entries_by_seq = {entry.seq: entry for entry in draft.transcript.entries}
    methods: dict[int, str] = {edit.seq: edit.kind for edit in draft.edits}
    methods |= dict.fromkeys(draft.compacted_seqs, "summarized") | dict.fromkeys(
        draft.left_out_seqs, "left_out"
    )
    compacted_entries = [entry for entry in original.entries if entry.seq in methods]
    largest_entries = sorted(compacted_entries, key=lambda entry: -entry.character_count)[
        :MAX_TARGETS
    ]
    return tuple(
        _build_target(entry, cast("Method", methods[entry.seq]), entries_by_seq.get(entry.seq))
        for entry in sorted(largest_entries, key=_get_seq)
    )


def _build_target(
    entry: TranscriptEntry, method: Method, entry_after: TranscriptEntry | None
) -> MessageOutcome:
    return MessageOutcome(
        seq=entry.seq,
        role=entry.role,
        tool=entry.tool_name,
        method=method,
        chars_before=entry.character_count,
        chars_after=entry_after.character_count if entry_after else 0,
    )


def _get_seq(entry: TranscriptEntry) -> int:
    return entry.seq
