"""What came of a pass."""

from dataclasses import dataclass
from typing import Literal

from compaction.core.transcript import Edit, Entry


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A proposal, or the reason why there is none. Token numbers are of the whole next request.

    Unless `status` is applied, everything is as it was: the old summary, `boundary_seq` None (not moved), equal token numbers.
    `kept` are the entries still sent, `kept_verbatim` the seqs of those among them that are older than the boundary: pinned, or first.
    `marker` is a text that tells the model of messages left out.
    """

    status: Literal["applied", "skipped", "failed"]
    reason: str = ""
    summary: str | None = None
    boundary_seq: int | None = None
    edits: tuple[Edit, ...] = ()
    kept: tuple[Entry, ...] = ()
    kept_verbatim: tuple[int, ...] = ()
    marker: str = ""
    stages_used: tuple[str, ...] = ()
    messages_compacted: int = 0
    tokens_before: int = 0
    tokens_after: int = 0

    @property
    def applied(self) -> bool:
        """Whether there is something to install."""
        return self.status == "applied"
