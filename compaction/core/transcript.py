"""The core's view of a conversation: the messages that are still sent, and what goes with them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriptCall:
    """A tool call of the model. `arguments` is JSON text, which may be broken."""

    id: str
    name: str
    arguments: str = ""


# Not frozen, which triples the cost of building one, and a pass builds one for each message. All
# the same, none is ever changed: the core returns new entries.
@dataclass(kw_only=True, slots=True)
class TranscriptEntry:
    """One message.

    `tokens` is its count under the policy in use; 0 means that it is not counted yet, and the core
    estimates it. `images` is the number of images sent with it. `original` is the stored text if an
    earlier edit changed `content`. `first_sent` is its text with as much of its files as its first
    request held, where that is known and differs from `content`.
    """

    seq: int
    role: str
    content: str = ""
    tokens: int = 0
    calls: tuple[TranscriptCall, ...] = ()
    call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    pinned: bool = False
    images: int = 0
    original: str | None = None
    first_sent: str | None = None

    @property
    def character_count(self) -> int:
        """The number of code points of its text and of its calls."""
        return len(self.content) + (self.call_characters if self.calls else 0)

    @property
    def call_characters(self) -> int:
        """The number of code points of its calls."""
        return sum(len(call.name) + len(call.arguments) for call in self.calls)


def change_entry(
    entry: TranscriptEntry,
    *,
    tokens: int,
    content: str | None = None,
    original: str | None = None,
    images: int | None = None,
) -> TranscriptEntry:
    """Return a message with another count, and with those of the other values that are given.

    `dataclasses.replace` takes three times longer, and some passes change every message.
    """
    return TranscriptEntry(
        seq=entry.seq,
        role=entry.role,
        content=entry.content if content is None else content,
        tokens=tokens,
        calls=entry.calls,
        call_id=entry.call_id,
        tool_name=entry.tool_name,
        is_error=entry.is_error,
        pinned=entry.pinned,
        images=entry.images if images is None else images,
        original=entry.original if original is None else original,
        first_sent=entry.first_sent,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Transcript:
    """Everything that the next request would send, with `entries` in the order of `seq`."""

    entries: tuple[TranscriptEntry, ...] = ()
    summary: str | None = None
    overhead_tokens: int = 0
    """What every request costs besides the fields below, already counted."""
    version: int = 0
    """The version of the context at which this was loaded."""
    family: str = ""
    """The model's family, on which some estimates depend."""
    system: str = ""
    """The system prompt. The policy says whether it counts."""
    tools: str = ""
    """The definitions of tools as text. The policy says whether they count."""
    boundary_seq: int | None = None
    """From here on everything is sent; older entries are exempt (pinned, or the first ones)."""
    summarized_up_to: int | None = None
    """The newest message that the summary covers, if not the last one before the boundary."""
    untold_seqs: frozenset[int] = frozenset()
    """Messages that the summary leaves out because they were pinned; they are sent themselves."""
    marker: str = ""
    """A notice for the model that messages were left out."""

    @property
    def last_summarized_seq(self) -> int:
        """The newest message that the summary covers; 0 without a summary.

        Exempt messages before the boundary count as covered: the summary was written when the
        boundary moved past them, and covered them too.
        """
        if not self.summary:
            return 0
        return self.summarized_up_to or (self.boundary_seq or 1) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriptEdit:
    """A message that the model sees in another form. The stored message does not change."""

    seq: int
    kind: str
    replacement: str = ""
