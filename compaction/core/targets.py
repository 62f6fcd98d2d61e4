"""What became of each message in a pass, for people to read."""

from typing import cast

from compaction.core.outcome import Method, Target
from compaction.core.stages.base import Draft
from compaction.core.transcript import Entry, Transcript

MOST = 200


def targets(before: Transcript, draft: Draft) -> tuple[Target, ...]:
    """One for each message that was changed or is gone, in order; of more than 200 the largest (Wolffish, Compaction Cards)."""
    now = {entry.seq: entry for entry in draft.transcript.entries}
    methods: dict[int, str] = {edit.seq: edit.kind for edit in draft.edits}
    methods |= dict.fromkeys(draft.compacted, "summarized") | dict.fromkeys(
        draft.left_out, "left_out"
    )
    touched = [entry for entry in before.entries if entry.seq in methods]
    largest = sorted(touched, key=lambda entry: -entry.characters)[:MOST]
    return tuple(
        _target(entry, cast("Method", methods[entry.seq]), now.get(entry.seq))
        for entry in sorted(largest, key=_seq)
    )


def _target(entry: Entry, method: Method, now: Entry | None) -> Target:
    return Target(
        seq=entry.seq,
        role=entry.role,
        tool=entry.tool_name,
        method=method,
        chars_before=entry.characters,
        chars_after=now.characters if now else 0,
    )


def _seq(entry: Entry) -> int:
    return entry.seq
