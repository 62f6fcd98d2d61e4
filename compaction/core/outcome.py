"""What came of a pass."""

from dataclasses import dataclass
from typing import Literal

from compaction.core.state import StructuredState
from compaction.core.transcript import TranscriptEdit, TranscriptEntry

Method = Literal["images_stripped", "pruned", "deduplicated", "excerpted", "summarized", "left_out"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageOutcome:
    """What became of one message, in characters; what a summary covers, or what was left out, has none after."""

    seq: int
    role: str
    tool: str
    method: Method
    chars_before: int
    chars_after: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A proposal, or the reason why there is none. Token numbers are of the whole next request.

    Unless `status` is applied, everything is as it was: the old summary, `boundary_seq` None (not moved), equal token numbers.
    `kept` are the entries still sent, `kept_verbatim` the seqs of those among them that are older than the boundary: pinned, or first.
    `marker` is a text that tells the model of messages left out. `summary_failed` says why no summary was written although other stages
    made room. `summarized_up_to`: as in the transcript.
    `messages_compacted` counts the messages that were changed or went; `targets` are these, of more than 200 the largest.
    `untouched` are the seqs that no stage was to change.
    """

    status: Literal["applied", "skipped", "failed"]
    reason: str = ""
    summary: str | None = None
    summary_error: str = ""
    summarized_up_to: int | None = None
    boundary_seq: int | None = None
    edits: tuple[TranscriptEdit, ...] = ()
    entries: tuple[TranscriptEntry, ...] = ()
    exempt_seqs: tuple[int, ...] = ()
    protected_seqs: frozenset[int] = frozenset()
    marker: str = ""
    stages_used: tuple[str, ...] = ()
    targets: tuple[MessageOutcome, ...] = ()
    messages_compacted: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    proposed_state: StructuredState | None = None

    @property
    def is_applied(self) -> bool:
        """Whether there is something to install."""
        return self.status == "applied"
