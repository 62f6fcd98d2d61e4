"""What both protocols do with the events of an answer, and why it ended."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, Protocol
from uuid import uuid4

from chatcore.providers.base import (
    EndReason,
    ReasoningDelta,
    StreamEnd,
    StreamPart,
    SurrogateJoiner,
    TextDelta,
    ToolCall,
)
from chatcore.providers.errors import ContextOverflow, ProviderUnavailable
from chatcore.providers.quirks.thought_tags import ThoughtTags
from chatcore.providers.server_sent_events import Event

END_MARK = b"[DONE]"
# What an event of an answer has, in either protocol, and what an error without `error` has.
_ANSWER_MEMBERS = frozenset({"choices", "usage", "delta", "index", "content", "content_block"})
_ERROR_MEMBERS = frozenset(
    {"message", "detail", "details", "msg", "title", "errors", "error_message", "error_msg"}
)


class ErrorEvent(Exception):
    """An error that came inside a stream, after the status 200.

    `body` is what the provider sent: usually an object with a type and a message.
    """

    def __init__(self, body: object) -> None:
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

    def end(self) -> None:
        """Release what was held back, before the last parts are taken."""
        ...

    def take_parts(self) -> list[StreamPart]:
        """Return the deltas since the last time; neighbors of one kind are one part."""
        ...

    def build_stream_end(self) -> StreamEnd:
        """Return the last part.

        Raises ProviderUnavailable if no event ended the answer, and ContextOverflow if the window
        was full before anything was written.
        """
        ...


def parse_json(data: bytes) -> object:
    """Return the value of an event's data.

    The text is decoded here, because `json` would guess another encoding than UTF-8.
    """
    return json.loads(data.decode())


def parse_objects(data: bytes) -> list[dict[str, Any]]:
    """Return the JSON objects in an event's data; most have one.

    Signs of life are left out: empty data, null, a word. So are end marks. Gemini puts its errors
    into a list, and some servers send several objects, one a line. Raises ValueError for JSON that
    is broken.
    """
    if not data.startswith(b"{"):
        data = data.strip().removeprefix(b"data:").strip()
        if data[:1] not in (b"{", b"[") or data.startswith(END_MARK):
            return []
    try:
        value = parse_json(data)
    except ValueError:
        if b"\n" not in data:
            raise
        return [value for line in data.splitlines() for value in parse_objects(line)]
    if isinstance(value, list):
        return [element for element in value if isinstance(element, dict)]
    return [value] if isinstance(value, dict) else []


def parse_error(data: bytes) -> Any:
    """Return the body of an error event, as text if it is no JSON."""
    try:
        return parse_json(data)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")


def reports_error(event: Mapping[str, object]) -> bool:
    """Return whether an object in the place of an answer's part is an error.

    Most errors stand under `error`. Others are a message or a code without one.
    """
    if event.get("error"):
        return True
    status = event.get("base_resp")  # MiniMax's, which is also part of its good answers
    if isinstance(status, dict) and status.get("status_code"):
        return True
    return not (event.keys() & _ANSWER_MEMBERS) and bool(event.keys() & _ERROR_MEMBERS)


def number_twin_calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the calls with an id of ours for each that has the id of an earlier one."""
    numbered_calls: dict[str, ToolCall] = {}
    for call in calls:
        if call.id in numbered_calls:
            call = replace(call, id=build_call_id())
        numbered_calls[call.id] = call
    return tuple(numbered_calls.values())


def build_call_id() -> str:
    """Return an id for a call that came without one."""
    return f"call_{uuid4().hex[:24]}"


def check_end(word: str | None, *, is_marked: bool, has_output: bool) -> EndReason:
    """Return why an answer ended, by the provider's word or the protocol's mark of the end.

    Raises ProviderUnavailable if the answer broke off, and ContextOverflow if the window was full
    before anything was written.
    """
    if not word:
        if is_marked:
            return "stop"
        raise ProviderUnavailable("The provider's stream ended before the answer did.")
    reason = classify_end(word)
    if reason == "broken":
        raise ProviderUnavailable(
            f"The provider broke the answer off, and gives as its reason: {word[:80]}."
        )
    if "window" in word and not has_output:
        raise ContextOverflow(
            "The request fills the model's window and leaves no room for an answer."
        )
    return reason


class PartJoiner:
    """Joins the deltas that came together: one part for neighbors of one kind, in their order."""

    def __init__(self, *, begins_thinking: bool = False) -> None:
        self._parts: list[StreamPart] = []
        self._pieces: list[str] = []
        self._kind: type[TextDelta | ReasoningDelta] = TextDelta
        self._tags = ThoughtTags(begins_inside=begins_thinking)
        self._surrogate_joiners = {TextDelta: SurrogateJoiner(), ReasoningDelta: SurrogateJoiner()}

    def add_text(self, text: str) -> None:
        """Add a piece of the answer. Thoughts in tags at its beginning are reasoning."""
        if self._tags.are_over:
            self._tags.watch(text)
            self._add_words(text)
            return
        for is_thought, piece in self._tags.split(text):
            self._add_tagged(piece, is_thought=is_thought)

    def end(self, *, is_cut: bool = False) -> None:
        """Add what was held back because a tag might have followed. Call it at the end."""
        for is_thought, piece in self._tags.end(is_cut=is_cut):
            self._add_tagged(piece, is_thought=is_thought)

    @property
    def tagged_thoughts(self) -> str:
        """The thoughts that stood in tags of the answer, with their tags."""
        return self._tags.tagged_thoughts

    @property
    def should_begin_thinking(self) -> bool | None:
        """Whether the next answer is to be read as one that begins with a thought."""
        return self._tags.should_begin_inside

    def _add_tagged(self, piece: str, *, is_thought: bool) -> None:
        if is_thought:
            self._add_thoughts(piece)
        else:
            self._add_words(piece)

    def _add_words(self, text: str) -> None:
        if self._kind is not TextDelta:
            self._close_part()
            self._kind = TextDelta
        self._pieces.append(text)

    def add_reasoning(self, text: str) -> None:
        """Add a piece of the reasoning."""
        self._tags.note_separate_thoughts()
        self._add_thoughts(text)

    def _add_thoughts(self, text: str) -> None:
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


# In the spelling of `_normalize`. (OpenAI, Anthropic, Gemini, Mistral, Cohere, Bedrock, TGI)
_REASONS: dict[str, EndReason] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "end": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "complete": "stop",
    "completed": "stop",
    "finish": "stop",
    "finished": "stop",
    "done": "stop",
    "length": "length",
    # The answer was not filtered, because the filter failed: nobody knows whether it is whole.
    "content_filter_error": "unknown",
}
# What the words of other servers have in them, in the order in which they are tried: a
# "malformed_tool_use" is no call, and "resource" stands in the name of a breakdown.
_PARTS: tuple[tuple[Literal["broken"] | EndReason, str], ...] = (
    ("broken", r"error(?!_toxic)|fail|abort|cancel|malformed|unexpected|timeout|timed_out"
     r"|interrupt|insufficient|unavailable|overload|disconnect"),
    ("refusal", r"filter|safety|sensitive|refus|policy|guardrail|prohibit|block|moderat|recitation"
     r"|toxic|spii|language"),
    ("length", r"length|max|limit|window|too_long|truncat|pause"),
    ("tool_calls", r"tool|function"),
)  # fmt: skip


def classify_end(word: str) -> EndReason | Literal["broken"]:
    """Return why an answer ended, or "broken" if its provider could not finish it.

    A word that nothing is known of is "unknown": such an answer is never taken for a whole one.
    """
    key = re.sub(r"[^a-z0-9]+", "_", word.lower()).strip("_")
    if key in _REASONS:
        return _REASONS[key]
    for reason, pattern in _PARTS:
        if re.search(pattern, key):
            return reason
    return "unknown"
