"""What both protocols do with the events of an answer."""

import json
from collections.abc import Iterable
from typing import Any, Protocol

from chatcore.providers.base import ReasoningDelta, StreamEnd, StreamPart, TextDelta
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.server_sent_events import Event
from chatcore.providers.unicode import SurrogateJoiner

MAX_COLLECTED_CHARS = 16_000_000


class ErrorEvent(Exception):
    """An error that came inside a stream, after the status 200.

    `body` is what the provider sent: usually an object with a type and a message.
    """

    def __init__(self, body: Any) -> None:
        super().__init__("The provider sent an error inside its stream.")
        self.body = body


class AnswerReader(Protocol):
    """Collects an answer while its events arrive."""

    event_count: int
    """The events so far that say something: no pings, no end marks."""
    is_done: bool
    """True if what follows in the stream is of no interest."""

    def read_events(self, events: Iterable[Event]) -> None:
        """Collect events. Raises ErrorEvent, and any exception for JSON of an unexpected shape."""
        ...

    def take_parts(self) -> list[StreamPart]:
        """Return the deltas since the last time; neighbors of one kind are one part."""
        ...

    def build_stream_end(self) -> StreamEnd:
        """Return the last part. Raises ProviderUnavailable if no event ended the answer."""
        ...


def parse_json(data: bytes) -> Any:
    """Return the value of an event's data.

    The text is decoded here, because `json` would guess another encoding than UTF-8.
    """
    return json.loads(data.decode())


class PartJoiner:
    """Joins the deltas that came together: one part for neighbors of one kind, in their order."""

    def __init__(self) -> None:
        self._parts: list[StreamPart] = []
        self._pieces: list[str] = []
        self._kind: type[TextDelta | ReasoningDelta] = TextDelta
        self._surrogate_joiners = {TextDelta: SurrogateJoiner(), ReasoningDelta: SurrogateJoiner()}

    def add_text(self, text: str) -> None:
        """Add a piece of the answer."""
        if self._kind is not TextDelta:
            self._close_part()
            self._kind = TextDelta
        self._pieces.append(text)

    def add_reasoning(self, text: str) -> None:
        """Add a piece of the reasoning."""
        if self._kind is not ReasoningDelta:
            self._close_part()
            self._kind = ReasoningDelta
        self._pieces.append(text)

    def add_thought(self, thought: dict[str, Any]) -> None:
        """Add a signed thought that has ended."""
        self._close_part()
        self._parts.append(ReasoningDelta("", thought))

    def take_parts(self) -> list[StreamPart]:
        """Return the parts since the last time."""
        self._close_part()
        parts = self._parts
        self._parts = []
        return parts

    def _close_part(self) -> None:
        if self._pieces:
            text = self._surrogate_joiners[self._kind].join("".join(self._pieces))
            self._pieces.clear()
            if text:
                self._parts.append(self._kind(text))


class CollectedText:
    """A text that is collected until the answer ends: reasoning, or the arguments of a call."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._char_count = 0

    def add_piece(self, piece: str) -> None:
        """Add a piece. Raises ProviderUnavailable beyond MAX_COLLECTED_CHARS."""
        self._char_count += len(piece)
        if self._char_count > MAX_COLLECTED_CHARS:
            raise ProviderUnavailable(
                "The provider sent reasoning or a tool call of more than"
                f" {MAX_COLLECTED_CHARS // 1_000_000} million characters."
            )
        self._pieces.append(piece)

    def join(self) -> str:
        """Return the whole text."""
        return "".join(self._pieces)
