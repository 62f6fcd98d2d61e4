"""What a pass asks of the writer of a summary, and when an answer is one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from compaction.core.estimate import estimate_summary
from compaction.core.outcome import Segment
from compaction.core.policy import Policy
from compaction.core.transcript import TranscriptEntry


class SummaryFailed(Exception):
    """No usable summary came back. `reason` is one sentence for users.

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

    Raises SummaryFailed when no usable summary came back. Any other exception ends the pass and
    reaches the caller of `pipeline.run` unchanged.
    """

    def __call__(self, task: SummaryTask, /) -> SummaryOutcome: ...


def find_objection(text: str, task: SummaryTask, policy: Policy) -> str | None:
    """Return why a text is not a usable summary for a task, in one sentence; None if it is usable.

    A summarizer that tries again by itself calls this too.
    """
    if not text.strip():
        return "The summary is empty."
    source_tokens = estimate_summary(task.previous, policy)
    source_tokens += sum(entry.tokens for entry in task.entries)
    text_tokens = estimate_summary(text.strip(), policy)
    if text_tokens < source_tokens:
        return None
    return (
        f"The summary ({text_tokens} tokens) is not smaller than what it replaces "
        f"({source_tokens} tokens)."
    )
