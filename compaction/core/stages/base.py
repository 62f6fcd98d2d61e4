"""What a stage is, and what it works with.

A stage takes a draft of the context and returns a smaller one, or the same draft when there is
nothing for it to do. It knows nothing of the stages before and after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from compaction.core.budget import Budget
from compaction.core.estimate import Measurement, TokenCounter, build_counter, estimate_transcript
from compaction.core.outcome import Segment
from compaction.core.policy import Policy
from compaction.core.protection import PassLimits, Protection
from compaction.core.transcript import (
    Transcript,
    TranscriptEdit,
    TranscriptEntry,
    change_entry,
)


class SummaryFailed(Exception):
    """No usable summary came back. `reason` is one sentence for people.

    `is_final` means that another try would fail too.
    """

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_final = is_final


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryTask:
    """What to summarize: the earlier summary and these messages, in at most `max_tokens` tokens.

    The earlier summary covers the messages up to `covered_seq`. `newest_entries` are the newest
    messages, whether they are to be summarized or not: they say what is spoken of. `target_count`
    is the number of messages that the pass changes or removes, as far as it has come.
    """

    previous: str | None
    entries: tuple[TranscriptEntry, ...]
    instructions: str
    max_tokens: int
    covered_seq: int = 0
    newest_entries: tuple[TranscriptEntry, ...] = ()
    target_count: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryOutcome:
    """The text of a summary, and what its writer proposes to store with it.

    That is what apps keep beside it, by their names, and the segments that the text is composed of;
    None for a text that is not composed.
    """

    text: str
    proposals: Mapping[str, object] = field(default_factory=dict)
    proposed_segments: tuple[Segment, ...] | None = None
    extract_reason: str = ""
    """Why the text consists of the messages' own sentences; empty if a model wrote it."""
    refused_seqs: tuple[int, ...] = ()
    """The messages that are not in the text, because the model's provider refuses them."""


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
    """What stays the same during one pass."""

    limits: PassLimits
    measurement: Measurement
    """The size of the context when the pass began, with what the provider counted."""
    estimate: int
    """The size of the same context by the policy's own estimate alone, in tokens."""
    protection: Protection
    summarize: Summarize
    instructions: str = ""

    @property
    def policy(self) -> Policy:
        """The policy of the pass."""
        return self.limits.policy

    @property
    def budget(self) -> Budget:
        """The budget of the pass."""
        return self.limits.budget

    def to_real_tokens(self, estimate: int) -> int:
        """Convert an estimated size of a context to real tokens, so that before and after compare.

        For example, a context was measured at 9,000 tokens where the policy estimates 6,000. A
        stage that brings the estimate down to 4,000 brings the context down to
        9,000 * 4,000 / 6,000 = 6,000 real tokens.
        """
        return self.measurement.tokens * estimate // max(1, self.estimate)

    def measure_tokens(self, transcript: Transcript) -> int:
        """Return the size of a context in real tokens."""
        return self.to_real_tokens(estimate_transcript(transcript, self.policy))

    def is_smaller(self, transcript: Transcript) -> bool:
        """Return whether a context is smaller than when the pass began."""
        return self.measure_tokens(transcript) < self.measurement.tokens

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
    proposals: Mapping[str, object] = field(default_factory=dict)
    proposed_segments: tuple[Segment, ...] | None = None
    extract_reason: str = ""
    refused_seqs: tuple[int, ...] = ()

    @property
    def removal_count(self) -> int:
        """How many messages are removed."""
        return len(self.compacted_seqs) + len(self.left_out_seqs)


class Stage(Protocol):
    """One way to make room. It may raise SummaryFailed."""

    def __call__(self, draft: ContextDraft, pass_context: PassContext) -> ContextDraft: ...


def apply_edits(
    draft: ContextDraft, pass_context: PassContext, kind: str, texts: Mapping[int, str]
) -> ContextDraft:
    """Return the draft with messages, given by seq, shown as other texts and without images.

    A message is edited only if that makes it smaller. It keeps one edit, the latest.
    """
    if not texts:
        return draft
    transcript = draft.transcript
    token_counter = build_counter(pass_context.policy, transcript.family)
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
