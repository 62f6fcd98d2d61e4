"""What a stage is, and what it works with.

A stage takes a draft of the context and returns a smaller one, or the same draft when there is
nothing for it to do. It knows nothing of the stages before and after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from compaction.core.counter import TokenCounter
from compaction.core.estimate import build_counter
from compaction.core.pass_context import PassContext
from compaction.core.summary import SummaryOutcome
from compaction.core.transcript import (
    Transcript,
    TranscriptEdit,
    TranscriptEntry,
    change_entry,
)
from compaction.systems.kit.protection import Protection

NO_SUMMARY = SummaryOutcome(text="")


@dataclass(frozen=True, kw_only=True, slots=True)
class StageContext(PassContext):
    """What stays the same while the stages run."""

    protection: Protection

    def fits(self, transcript: Transcript) -> bool:
        """Return whether a context is down to the target."""
        return self.measure_tokens(transcript) <= self.budget.target


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextDraft:
    """The context as the stages so far leave it."""

    transcript: Transcript
    edits: tuple[TranscriptEdit, ...] = ()
    compacted_seqs: tuple[int, ...] = ()
    """The messages that a summary replaces."""
    left_out_seqs: tuple[int, ...] = ()
    """The messages that nothing replaces."""
    summary: SummaryOutcome = NO_SUMMARY
    """The summary that a stage has asked for."""

    @property
    def removal_count(self) -> int:
        """How many messages are removed."""
        return len(self.compacted_seqs) + len(self.left_out_seqs)


class Stage(Protocol):
    """One way to make room. It may raise SummaryFailed."""

    def __call__(self, draft: ContextDraft, context: StageContext, /) -> ContextDraft: ...


def apply_edits(
    draft: ContextDraft, context: StageContext, kind: str, texts: Mapping[int, str]
) -> ContextDraft:
    """Return the draft with messages, given by seq, shown as other texts and without images.

    A message is edited only if that makes it smaller. It keeps one edit, the latest.
    """
    if not texts:
        return draft
    transcript = draft.transcript
    token_counter = build_counter(context.policy, transcript.family)
    entries: list[TranscriptEntry] = []
    edit_seqs: set[int] = set()
    for entry in transcript.entries:
        if entry.seq in texts:
            edited_entry = _replace_text(entry, texts[entry.seq], token_counter)
            # A placeholder may be longer than what it would replace: then the message stays.
            if edited_entry.tokens < entry.tokens:
                edit_seqs.add(entry.seq)
                entry = edited_entry
        entries.append(entry)
    if not edit_seqs:
        return draft
    earlier_edits = [edit for edit in draft.edits if edit.seq not in edit_seqs]
    edits = [
        TranscriptEdit(seq=seq, kind=kind, replacement=texts[seq]) for seq in sorted(edit_seqs)
    ]
    return replace(
        draft,
        transcript=replace(transcript, entries=tuple(entries)),
        edits=(*earlier_edits, *edits),
    )


def count_savings(before: ContextDraft, after: ContextDraft) -> dict[int, int]:
    """Return the estimated tokens that each edited message takes less, by seq."""
    entry_pairs = zip(before.transcript.entries, after.transcript.entries, strict=True)
    return {old.seq: old.tokens - new.tokens for old, new in entry_pairs if new is not old}


def _replace_text(
    entry: TranscriptEntry, text: str, token_counter: TokenCounter
) -> TranscriptEntry:
    return change_entry(
        entry,
        content=text,
        original=entry.content if entry.original is None else entry.original,
        images=0,
        tokens=token_counter.count_entry(entry, content=text, images=0),
    )
