"""A conversation as the core sees it: the messages still sent, the summary before them, and what every request costs besides."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriptCall:
    """A tool call of the model; `arguments` is JSON text, perhaps broken."""

    id: str
    name: str
    arguments: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriptEntry:
    """One message. `tokens` is its count under the policy in use; 0 means not counted yet: the core estimates it from the text.

    `images` are those sent with it. `original` is the stored text, where `content` is another form of it that an earlier edit gave.
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

    @property
    def character_count(self) -> int:
        """Code points of its words and of the calls it makes."""
        return len(self.content) + sum(len(call.name) + len(call.arguments) for call in self.calls)


@dataclass(frozen=True, kw_only=True, slots=True)
class Transcript:
    """What the next request would send: `entries` in order of `seq`, from the boundary on.

    `boundary_seq` names the oldest message that is not there only because it is kept for ever (pinned, or first); None: nothing is older.
    `summarized_up_to` is the newest message the summary tells of, where that is another than the last before the boundary. `marker` is the
    text that tells of messages left out. `system` and `tools` are the texts that every request sends besides, which a policy may or may not
    count; `overhead_tokens` is what it costs besides that is counted already. `version` names the state it was read at. `family` is the
    model's, which some estimates depend on.
    """

    entries: tuple[TranscriptEntry, ...] = ()
    summary: str | None = None
    overhead_tokens: int = 0
    version: int = 0
    family: str = ""
    system: str = ""
    tools: str = ""
    boundary_seq: int | None = None
    summarized_up_to: int | None = None
    marker: str = ""

    @property
    def last_summarized_seq(self) -> int:
        """The newest message the summary tells of; 0 without one. What is kept before the boundary was told when that moved."""
        if not self.summary:
            return 0
        return self.summarized_up_to or (self.boundary_seq or 1) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriptEdit:
    """A message to be shown to the model in another form."""

    seq: int
    kind: str
    replacement: str = ""
