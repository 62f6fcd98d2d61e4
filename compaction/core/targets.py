"""The list of what a pass did to each message, for people to read."""

from typing import cast

from compaction.core.outcome import MessageOutcome, Method
from compaction.core.stages.base import ContextDraft
from compaction.core.transcript import Transcript, TranscriptEntry

MAX_TARGETS = 200


def list_targets(original: Transcript, draft: ContextDraft) -> tuple[MessageOutcome, ...]:
    """Return one outcome for each message that was changed or removed, in order.

    If there are more than 200, only the largest are returned (Wolffish, Compaction Cards).
    """
    entries_after = {entry.seq: entry for entry in draft.transcript.entries}
    methods: dict[int, str] = {edit.seq: edit.kind for edit in draft.edits}
    methods |= dict.fromkeys(draft.compacted_seqs, "summarized")
    methods |= dict.fromkeys(draft.left_out_seqs, "left_out")
    entries = [entry for entry in original.entries if entry.seq in methods]
    if len(entries) > MAX_TARGETS:
        entries.sort(key=lambda entry: entry.character_count, reverse=True)
        largest = entries[:MAX_TARGETS]
        entries = sorted(largest, key=lambda entry: entry.seq)
    return tuple(
        _build_target(entry, cast("Method", methods[entry.seq]), entries_after.get(entry.seq))
        for entry in entries
    )


def _build_target(
    entry: TranscriptEntry, method: Method, entry_after: TranscriptEntry | None
) -> MessageOutcome:
    chars_before = entry.character_count
    chars_after = entry_after.character_count if entry_after else 0
    return MessageOutcome(
        seq=entry.seq,
        role=entry.role,
        tool=entry.tool_name,
        method=method,
        chars_before=chars_before,
        chars_after=chars_after,
        percent_saved=round(100 * (chars_before - chars_after) / max(1, chars_before)),
    )
