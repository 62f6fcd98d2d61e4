"""The result of a pass, and the segments that a summary may be composed of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from compaction.core.transcript import TranscriptEdit, TranscriptEntry

SegmentKind = Literal["span", "text", "digest"]

Method = Literal["images_stripped", "pruned", "deduplicated", "excerpted", "summarized", "left_out"]


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A message as the summarizer reads it, with its number (seq) and its day, if that is known."""

    seq: int
    text: str
    day: date | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """The summary of the messages `first_seq` to `last_seq`.

    A `span` was summarized from its messages. A `text` was not written here: a user edited the
    summary, or it came with an import or from another policy; it stands word for word. A `digest`
    holds the most important sentences of several segments, which are too old to stand alone.
    """

    first_seq: int
    last_seq: int
    text: str
    kind: SegmentKind = "span"
    fingerprint: str = ""
    """Of what a span was written from; empty for the other kinds."""
    id: int | None = None
    """Its key where it is stored; None for a new one."""
    days: tuple[date, date] | None = None
    """The days of its first and its last message, where they are known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageOutcome:
    """What a pass did to one message. `chars_after` is 0 if the message is no longer sent.

    `percent_saved` is the share of its characters by which it is shorter. It may be negative: a
    placeholder for an image is longer than no text.
    """

    seq: int
    role: str
    tool: str
    method: Method
    chars_before: int
    chars_after: int
    percent_saved: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A proposed context, or the reason why there is none. Tokens are of the whole next request.

    Unless `status` is `applied`, everything is as before: the summary is the old one,
    `boundary_seq` is None, and both numbers of tokens are equal.
    """

    status: Literal["applied", "skipped", "failed"]
    reason: str = ""
    """Why nothing is applied, or soon more will have to be; a sentence for users."""
    is_final: bool = False
    """Whether another try of a failed pass would fail too."""
    summary: str | None = None
    summary_error: str = ""
    """Why no summary was written, if other stages made room without one, or with an extract."""
    is_extract: bool = False
    """Whether the summary consists of the messages' own sentences."""
    refused_seqs: tuple[int, ...] = ()
    """The messages that are not in the summary, because the model's provider refuses them."""
    summarized_up_to: int | None = None
    untold_seqs: tuple[int, ...] = ()
    """As in Transcript."""
    boundary_seq: int | None = None
    edits: tuple[TranscriptEdit, ...] = ()
    entries: tuple[TranscriptEntry, ...] = ()
    """The messages that are still sent."""
    exempt_seqs: tuple[int, ...] = ()
    """Those of `entries` that are older than the boundary: pinned, or among the first."""
    protected_seqs: frozenset[int] = frozenset()
    """The messages that no stage was allowed to change."""
    marker: str = ""
    """A notice for the model that messages were left out."""
    stages_used: tuple[str, ...] = ()
    """The stages that changed something, in order."""
    targets: tuple[MessageOutcome, ...] = ()
    """The messages that were changed or removed; the 200 largest, if there are more."""
    messages_compacted: int = 0
    """How many messages were changed or removed."""
    tokens_before: int = 0
    tokens_after: int = 0
    proposals: Mapping[str, object] = field(default_factory=dict)
    """What apps are to store with the summary, by their names."""
    proposed_segments: tuple[Segment, ...] | None = None
    """The segments that the summary is composed of, new ones too; None if it is not composed."""

    @property
    def is_applied(self) -> bool:
        """Whether there is something to install."""
        return self.status == "applied"
