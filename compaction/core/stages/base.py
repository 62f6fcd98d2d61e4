"""What a stage is: it takes a draft of the context and gives back a smaller one, or the same."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from compaction.core.budget import Budget
from compaction.core.estimate import Measure
from compaction.core.policy import Policy
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
    """What stays the same during one pass. `cramped`: the context is over its threshold, so room must be made."""

    policy: Policy
    budget: Budget
    measure: Measure
    summarize: Summarize
    instructions: str = ""
    up_to_seq: int | None = None
    cramped: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """The context as the stages so far leave it."""

    transcript: Transcript
    edits: tuple[Edit, ...] = ()
    compacted: tuple[int, ...] = ()
    kept_verbatim: tuple[int, ...] = ()


class Stage(Protocol):
    """One way to make room. Raises SummaryFailed; returns the draft it was given when it has nothing to do."""

    def __call__(self, draft: Draft, work: Work) -> Draft: ...
