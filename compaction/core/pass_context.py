"""What stays the same during one pass, and what it asks of the writer of a summary."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from compaction.core.budget import Budget
from compaction.core.counter import TokenCounter
from compaction.core.estimate import (
    Measurement,
    build_counter,
    estimate_transcript,
)
from compaction.core.policy import Policy
from compaction.core.protection import MIN_WORTHWHILE_TOKENS, PassLimits, SplitPoint
from compaction.core.summary import (
    Summarize,
    SummaryFailed,
    SummaryOutcome,
    SummaryTask,
    find_objection,
)
from compaction.core.transcript import Transcript, TranscriptEntry, change_entry

NEWEST_COUNT = 6  # messages that say what the conversation is about at the moment


@dataclass(frozen=True, kw_only=True, slots=True)
class PassContext:
    """What stays the same during one pass."""

    limits: PassLimits
    measurement: Measurement
    """The size of the context when the pass began, with what the provider counted."""
    estimate: int
    """The size of the same context by the policy's own estimate alone, in tokens."""
    summarize: Summarize
    instructions: str = ""
    only_stages: Collection[str] = ()
    growth_tokens: int = 0
    """What the reference text beside the summary will have grown by."""

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

    def add_growth(self, transcript: Transcript) -> Transcript:
        """Return the transcript with the growth of the reference text in its overhead."""
        return replace(transcript, overhead_tokens=transcript.overhead_tokens + self.growth_tokens)

    def find_worthwhile_split(
        self, transcript: Transcript, splits: Iterable[SplitPoint]
    ) -> tuple[SplitPoint, tuple[int, ...]] | None:
        """Return the first split whose old part a summary should replace, and its messages."""
        for split in splits:
            old_entries = [entry for entry in transcript.entries if split.is_old(entry)]
            if old_entries and self._is_worthwhile(old_entries):
                return split, tuple(entry.seq for entry in old_entries)
        return None

    def _is_worthwhile(self, old_entries: Iterable[TranscriptEntry]) -> bool:
        """Return whether a summary of messages saves something, or is made all the same.

        No call is made by hand for so little that it would save nothing.
        """
        must_make_room = self.limits.is_over_threshold and self.limits.up_to_seq is None
        if must_make_room or self.limits.is_rewrite:
            return True
        tokens = self.to_real_tokens(sum(entry.tokens for entry in old_entries))
        return tokens >= MIN_WORTHWHILE_TOKENS

    def request_summary(
        self,
        transcript: Transcript,
        entries: Iterable[TranscriptEntry],
        *,
        target_count: int,
        restores_originals: bool = False,
    ) -> SummaryOutcome:
        """Return a summary of the messages and of the earlier summary. Raises SummaryFailed.

        If the earlier summary covers all of them already, it is returned and no model is called.
        With `restores_originals` shortened messages are read in full.
        """
        previous = transcript.summary
        new_entries = [entry for entry in entries if is_untold(entry, transcript)]
        if previous and not new_entries:
            return SummaryOutcome(text=previous)
        token_counter = build_counter(self.policy, transcript.family)
        task = SummaryTask(
            previous=previous,
            entries=tuple(
                _restore_text(entry, token_counter, restores_originals) for entry in new_entries
            ),
            instructions=self.instructions,
            max_tokens=self.budget.summary_tokens,
            covered_seq=transcript.last_summarized_seq,
            newest_entries=transcript.entries[-NEWEST_COUNT:],
            target_count=target_count,
        )
        summary = self.summarize(task)
        summary = replace(summary, text=summary.text.strip())
        objection = find_objection(summary.text, task, self.policy)
        if objection:
            raise SummaryFailed(objection)
        return summary


def is_untold(entry: TranscriptEntry, transcript: Transcript) -> bool:
    """Return whether the earlier summary does not cover a message."""
    return entry.seq > transcript.last_summarized_seq or entry.seq in transcript.untold_seqs


def list_sources(
    transcript: Transcript, split: SplitPoint
) -> tuple[list[TranscriptEntry], frozenset[int]]:
    """Return the messages that a summary up to a boundary covers, and the seqs of those it omits.

    It omits the pinned ones that no summary covers yet: they are sent as they are. Once they are no
    longer pinned, the next summary covers them.
    """
    early_entries = [entry for entry in transcript.entries if entry.seq < split.boundary]
    untold_seqs = frozenset(
        entry.seq for entry in early_entries if entry.pinned and is_untold(entry, transcript)
    )
    return [entry for entry in early_entries if entry.seq not in untold_seqs], untold_seqs


def replace_entries(
    transcript: Transcript, split: SplitPoint, summary: str, *, last_seq: int
) -> Transcript:
    """Return the transcript with a summary that covers it up to `last_seq` before the boundary."""
    return replace(
        transcript,
        entries=tuple(entry for entry in transcript.entries if not split.is_old(entry)),
        summary=summary,
        boundary_seq=split.boundary,
        # Needed only if the summary covers more than what the boundary says anyway.
        summarized_up_to=last_seq if last_seq >= split.boundary else None,
    )


def _restore_text(
    entry: TranscriptEntry, token_counter: TokenCounter, restores_original: bool
) -> TranscriptEntry:
    """Return a message as the summarizer reads it: as it is shown, or its original.

    Its files are in it as they were when they were sent: the next request may have less room.
    """
    if entry.original is not None and not restores_original:
        return entry
    text = entry.first_sent or entry.original
    if text is None:
        return entry
    tokens = token_counter.count_entry(entry, content=text)
    return change_entry(entry, content=text, tokens=tokens)
