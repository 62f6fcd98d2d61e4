"""What a stage is: it takes a draft of the context and gives back a smaller one, or the same."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from compaction.core.budget import Budget
from compaction.core.estimate import Measure, estimated, weigh
from compaction.core.policy import Policy
from compaction.core.protection import Limits, Protection
from compaction.core.transcript import Edit, Entry, Transcript


class SummaryFailed(Exception):
    """No usable summary came back; `reason` is one sentence for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryTask:
    """What to summarize: the summary so far, merged with these messages into one of at most `max_tokens` tokens."""

    previous: str | None
    entries: tuple[Entry, ...]
    instructions: str
    max_tokens: int


Summarize = Callable[[SummaryTask], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What stays the same during one pass. `cramped`: the context is over its threshold, so room must be made.

    `estimate`: what the policy's own rule makes of the context that `measure` measured.
    """

    policy: Policy
    budget: Budget
    measure: Measure
    estimate: int
    protection: Protection
    summarize: Summarize
    instructions: str = ""
    up_to_seq: int | None = None
    cramped: bool = False

    @property
    def limits(self) -> Limits:
        """How much this pass may keep."""
        scale = self.measure.scale
        return Limits(
            policy=self.policy,
            budget=self.budget,
            scale=scale,
            cramped=self.cramped,
            up_to_seq=self.up_to_seq,
        )

    def size(self, estimate: int) -> int:
        """Real tokens of a context by its estimate, in the proportion of what was measured, so that before and after compare."""
        return self.measure.tokens * estimate // max(1, self.estimate)

    def smaller(self, transcript: Transcript) -> bool:
        """Whether a context is smaller than when the pass began."""
        return self.size(estimated(transcript, self.policy)) < self.measure.tokens

    def fits(self, transcript: Transcript) -> bool:
        """Whether a context is down to the target."""
        return self.size(estimated(transcript, self.policy)) <= self.budget.target


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """The context as the stages so far leave it: `compacted` went into the summary, `left_out` into nothing."""

    transcript: Transcript
    edits: tuple[Edit, ...] = ()
    compacted: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()

    @property
    def removed(self) -> int:
        """How many messages are gone."""
        return len(self.compacted) + len(self.left_out)


class Stage(Protocol):
    """One way to make room. Raises SummaryFailed; returns the draft it was given when it has nothing to do."""

    def __call__(self, draft: Draft, work: Work) -> Draft: ...


def show(draft: Draft, work: Work, kind: str, texts: Mapping[int, str]) -> Draft:
    """The draft with messages (by seq) shown as other texts, without their images; each only where that makes it smaller."""
    before = draft.transcript
    made = tuple(
        _shown(entry, texts[entry.seq]) if entry.seq in texts else entry for entry in before.entries
    )
    counted = weigh(replace(before, entries=made), work.policy).entries
    entries = tuple(
        new if new.tokens < old.tokens else old
        for old, new in zip(before.entries, counted, strict=True)
    )
    changed = {new.seq for old, new in zip(before.entries, entries, strict=True) if new is not old}
    if not changed:
        return draft
    edits = [edit for edit in draft.edits if edit.seq not in changed]
    edits += [Edit(seq=seq, kind=kind, replacement=texts[seq]) for seq in sorted(changed)]
    return replace(draft, transcript=replace(before, entries=entries), edits=tuple(edits))


def saved(before: Draft, after: Draft) -> dict[int, int]:
    """Estimated tokens that each message takes less, by seq."""
    both = zip(before.transcript.entries, after.transcript.entries, strict=True)
    return {old.seq: old.tokens - new.tokens for old, new in both if new is not old}


def _shown(entry: Entry, text: str) -> Entry:
    original = entry.content if entry.original is None else entry.original
    return replace(entry, content=text, original=original, images=0, tokens=0)
