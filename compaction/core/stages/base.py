"""What a stage is: it takes a draft of the context and gives back a smaller one, or the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from compaction.core.budget import Budget
from compaction.core.estimate import Measurement, count_entry_tokens, estimate_transcript
from compaction.core.policy import Policy
from compaction.core.protection import PassLimits, Protection
from compaction.core.state import StructuredState
from compaction.core.transcript import Transcript, TranscriptEdit, TranscriptEntry


class SummaryFailed(Exception):
    """No usable summary came back; `reason` is one sentence for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryTask:
    """What to summarize: the summary so far, merged with these messages into one of at most `max_tokens` tokens."""

    previous: str | None
    entries: tuple[TranscriptEntry, ...]
    instructions: str
    max_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryOutcome:
    """The text of a summary, and the structured state that its writer proposes to store with it."""

    text: str
    proposed_state: StructuredState | None = None


class Summarize(Protocol):
    """The one call out of the core: write the summary that a task describes.

    The core does no I/O, but the caller's implementation of this may: it usually calls a language
    model, and may record the attempt. It is called at most once a pass, and tries again by itself.
    It must not change the context that the pass works on, and must not install anything: what it
    wants stored travels in the SummaryOutcome, and counts only if the whole pass is applied.

    Raises SummaryFailed when no usable summary came back; the stages that follow still run. Any
    other exception ends the pass and reaches the caller of `pipeline.run` unchanged.
    """

    def __call__(self, task: SummaryTask, /) -> SummaryOutcome: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class PassContext:
    """What stays the same during one pass. `cramped`: the context is over its threshold, so room must be made.

    `estimate`: what the policy's own rule makes of the context that `measure` measured.
    """

    policy: Policy
    budget: Budget
    measurement: Measurement
    estimate: int
    protection: Protection
    summarize: Summarize
    instructions: str = ""
    up_to_seq: int | None = None
    is_over_threshold: bool = False

    @property
    def limits(self) -> PassLimits:
        """How much this pass may keep."""
        token_ratio = self.measurement.token_ratio
        return PassLimits(
            policy=self.policy,
            budget=self.budget,
            token_ratio=token_ratio,
            is_over_threshold=self.is_over_threshold,
            up_to_seq=self.up_to_seq,
        )

    def to_real_tokens(self, estimate: int) -> int:
        """Real tokens of a context by its estimate, in the proportion of what was measured, so that before and after compare."""
        return self.measurement.tokens * estimate // max(1, self.estimate)

    def is_smaller(self, transcript: Transcript) -> bool:
        """Whether a context is smaller than when the pass began."""
        return (
            self.to_real_tokens(estimate_transcript(transcript, self.policy))
            < self.measurement.tokens
        )

    def fits(self, transcript: Transcript) -> bool:
        """Whether a context is down to the target."""
        return (
            self.to_real_tokens(estimate_transcript(transcript, self.policy)) <= self.budget.target
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextDraft:
    """The context as the stages so far leave it: `compacted` went into the summary, `left_out` into nothing."""

    transcript: Transcript
    edits: tuple[TranscriptEdit, ...] = ()
    compacted_seqs: tuple[int, ...] = ()
    left_out_seqs: tuple[int, ...] = ()
    proposed_state: StructuredState | None = None

    @property
    def removal_count(self) -> int:
        """How many messages are gone."""
        return len(self.compacted_seqs) + len(self.left_out_seqs)


class Stage(Protocol):
    """One way to make room. Raises SummaryFailed; returns the draft it was given when it has nothing to do."""

    def __call__(self, draft: ContextDraft, pass_context: PassContext) -> ContextDraft: ...


def apply_edits(
    draft: ContextDraft, pass_context: PassContext, kind: str, texts: Mapping[int, str]
) -> ContextDraft:
    """The draft with messages (by seq) shown as other texts, without their images; each only where that makes it smaller."""
    transcript = draft.transcript
    edited_entries = tuple(
        _replace_text(entry, texts[entry.seq]) if entry.seq in texts else entry
        for entry in transcript.entries
    )
    sized_entries = count_entry_tokens(
        replace(transcript, entries=edited_entries), pass_context.policy
    ).entries
    entries = tuple(
        new if new.tokens < old.tokens else old
        for old, new in zip(transcript.entries, sized_entries, strict=True)
    )
    edit_seqs = {
        new.seq for old, new in zip(transcript.entries, entries, strict=True) if new is not old
    }
    if not edit_seqs:
        return draft
    edits = [edit for edit in draft.edits if edit.seq not in edit_seqs]
    edits += [
        TranscriptEdit(seq=seq, kind=kind, replacement=texts[seq]) for seq in sorted(edit_seqs)
    ]
    return replace(draft, transcript=replace(transcript, entries=entries), edits=tuple(edits))


def count_savings(before: ContextDraft, after: ContextDraft) -> dict[int, int]:
    """Estimated tokens that each message takes less, by seq."""
    entry_pairs = zip(before.transcript.entries, after.transcript.entries, strict=True)
    return {old.seq: old.tokens - new.tokens for old, new in entry_pairs if new is not old}


def _replace_text(entry: TranscriptEntry, text: str) -> TranscriptEntry:
    original = entry.content if entry.original is None else entry.original
    return replace(entry, content=text, original=original, images=0, tokens=0)
