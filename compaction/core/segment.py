"""A segment: what was written of one span of messages, once and from the messages themselves."""

from dataclasses import dataclass
from typing import Literal

SegmentKind = Literal["span", "text", "digest"]


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A message as the summarizer reads it, with its number (seq)."""

    seq: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """The summary of the messages `first_seq` to `last_seq`.

    A `span` was summarized from its messages. A `text` was not written here: a person edited the
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
