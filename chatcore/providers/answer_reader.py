"""What both protocols do with the events of an answer, and why it ended.

Tool calls come in every form that servers send. By the protocol of OpenAI each piece names the
index of its call, and the first one its id and name. Servers leave out the index, give every call
the same one, send the id later than the name, a new id with each piece, the name with each piece,
the arguments of all calls glued together, or arguments as an object.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal
from uuid import uuid4

from chatcore.providers.base import (
    EndReason,
    ReasoningDelta,
    StreamEnd,
    StreamPart,
    SurrogateJoiner,
    TextDelta,
    ToolCall,
    mend_surrogates,
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

_DECODER = json.JSONDecoder()

# What ends a message in templates, and what may become it. Some servers send it.
_END_MARKS = re.compile(r"(?:<\|[a-z_]{2,20}\|>\s{0,8}){1,4}\Z")
_BEGUN_END_MARKS = re.compile(r"(?:<\|[a-z_]{2,20}\|>\s{0,8}){0,4}(?:<\|?|<\|[a-z_]{1,20}\|?)?\Z")
_MAX_END_MARKS_CHARS = 128

MAX_COLLECTED_CHARS = 16_000_000


class ErrorEvent(Exception):
    """An error that came inside a stream, after the status 200.

    `body` is what the provider sent: usually an object with a type and a message.
    """

    def __init__(self, body: object) -> None:
        super().__init__("The provider sent an error inside its stream.")
        self.body = body


def parse_json(data: bytes) -> object:
    """Return the value of an event's data.

    The text is decoded here, because `json` would guess another encoding than UTF-8.
    """
    return json.loads(data.decode())


def parse_objects(data: bytes) -> list[dict[str, object]]:
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


def parse_error(data: bytes) -> object:
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
        self._held_words = ""  # at the end of what has come, as they may be a mark
        self._has_words = False
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
        if self._has_words:
            self._held_words = _END_MARKS.sub("", self._held_words)
        self._release_words()

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
        """Add words, except for those at their end that may become an end mark."""
        text = self._held_words + text
        begun = _BEGUN_END_MARKS.search(text) if "<" in text[-_MAX_END_MARKS_CHARS:] else None
        self._held_words = text[begun.start() :] if begun else ""
        self._append_words(text[: begun.start()] if begun else text)

    def _release_words(self) -> None:
        text, self._held_words = self._held_words, ""
        self._append_words(text)

    def _append_words(self, text: str) -> None:
        if not text:
            return
        self._has_words = self._has_words or bool(text.strip())
        if self._kind is not TextDelta:
            self._close_part()
            self._kind = TextDelta
        self._pieces.append(text)

    def add_reasoning(self, text: str) -> None:
        """Add a piece of the reasoning."""
        self._tags.note_separate_thoughts()
        self._add_thoughts(text)

    def _add_thoughts(self, text: str) -> None:
        self._release_words()
        if self._kind is not ReasoningDelta:
            self._close_part()
            self._kind = ReasoningDelta
        self._pieces.append(text)

    def add_thought(self, thought: dict[str, object]) -> None:
        """Add a signed thought that has ended."""
        self._release_words()
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


class AnswerReader:
    """Collects an answer while its events arrive.

    `model` is stored with the data that only this model may receive again. `event_count` counts the
    events that say something: no pings, no end marks. `is_done` is True if what follows in the
    stream is of no interest.
    """

    def __init__(self, model: str, *, begins_thinking: bool = False) -> None:
        self.event_count = 0
        self.is_done = False
        self._model = model
        self._part_joiner = PartJoiner(begins_thinking=begins_thinking)
        self._has_output = False

    def read_events(self, events: Iterable[Event]) -> None:
        """Collect events. Raises ErrorEvent, and any exception for JSON of an unexpected shape."""
        raise NotImplementedError

    def end(self) -> None:
        """Release what was held back, before the last parts are taken."""
        self._part_joiner.end()

    def take_parts(self) -> list[StreamPart]:
        """Return the deltas since the last time; neighbors of one kind are one part."""
        return self._part_joiner.take_parts()

    def build_stream_end(self) -> StreamEnd:
        """Return the last part.

        Raises ProviderUnavailable if nothing ended the answer, and ContextOverflow if the window
        was full before anything was written.
        """
        raise NotImplementedError

    def _add_text(self, text: str) -> None:
        self._has_output = True
        self._part_joiner.add_text(text)


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


class CallCollector:
    """Collects the calls of one answer while their pieces arrive."""

    def __init__(self, tool_names: frozenset[str]) -> None:
        self._tool_names = tool_names
        self._calls: list[_PartialCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def extras(self) -> dict[str, dict[str, object]]:
        """What came with each call, by its id, and must go back with it."""
        return {call.id: call.extra for call in self._calls}

    def add_delta(self, delta: Mapping[str, object]) -> None:
        """Collect the pieces in a delta or a whole message."""
        fragments = delta.get("tool_calls") or delta.get("function_call")
        if not fragments:
            return
        for fragment in fragments if isinstance(fragments, list) else [fragments]:
            if isinstance(fragment, dict):
                self._add_piece(_Piece(fragment))

    def build_calls(self) -> Iterator[ToolCall]:
        """Yield the calls. Raises ProviderUnavailable for arguments of a call without a name."""
        for call in self._calls:
            if call.name:
                yield from call.build_calls()
            elif call.arguments.join().strip():
                raise ProviderUnavailable("The provider sent a tool call without a name.")

    def _add_piece(self, piece: "_Piece") -> None:
        call = self._find_call(piece)
        if call is None:
            call = _PartialCall(piece.index, piece.id)
            self._calls.append(call)
        call.add_piece(piece, joins_names=self._may_join(call.name, piece.name))

    def _find_call(self, piece: "_Piece") -> "_PartialCall | None":
        """Return the call to which a piece belongs, or None if it begins one."""
        if not self._calls:
            return None
        for call in reversed(self._calls):
            if piece.id == call.id and piece.index in (None, call.index):
                return None if call.is_followed_by(piece) else call
        for call in reversed(self._calls):
            if piece.index in (None, call.index):
                return None if self._begins_beside(call, piece) else call
        return None if piece.id or piece.name else self._calls[-1]

    def _begins_beside(self, call: "_PartialCall", piece: "_Piece") -> bool:
        """Return whether a piece begins a call, although it could belong to this one by its place.

        Its id is not that of the call.
        """
        has_other_id = bool(piece.id) and call.has_own_id
        if not piece.name:
            return has_other_id and call.is_over  # the name may come later
        if not call.name:
            return False
        is_same_name = piece.name == call.name
        if call.is_over:
            return has_other_id or bool(piece.arguments) or not is_same_name or piece.index is None
        if call.has_begun:
            return not is_same_name
        if is_same_name:
            return piece.index is None
        return has_other_id or not self._may_join(call.name, piece.name)

    def _may_join(self, name: str, next_name: str) -> bool:
        """Return whether two names may be two pieces of one."""
        return bool(name) and any(
            tool_name.startswith(name + next_name) for tool_name in self._tool_names
        )


class _Piece:
    """What one piece of a call says, whatever its form."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        function = fields.get("function")
        if not isinstance(function, dict):
            function = fields
        self.index = _parse_index(fields.get("index"))
        self.id = _to_text(fields.get("id")) or _to_text(fields.get("call_id"))
        self.name = _to_text(function.get("name"))
        arguments = function.get("arguments")
        for other_name in ("parameters", "input"):
            if arguments is None:
                arguments = function.get(other_name)
        self.arguments = _to_arguments(arguments)
        extra = fields.get("extra_content")
        self.extra: dict[str, object] = extra if isinstance(extra, dict) else {}


class _PartialCall:
    """Collects a tool call while its pieces arrive."""

    def __init__(self, index: int | None, id: str) -> None:
        self.index = index
        self.has_own_id = bool(id)
        self.id = id or build_call_id()
        self.name = ""
        self.arguments = CollectedText()
        self.extra: dict[str, object] = {}
        self._last_piece = ""

    @property
    def has_begun(self) -> bool:
        return self.arguments.char_count > 0

    @property
    def is_over(self) -> bool:
        """True if the arguments are whole JSON."""
        return self.has_begun and _is_object(self.arguments.join())

    def is_followed_by(self, piece: _Piece) -> bool:
        """Return whether a piece with the same id begins another call all the same."""
        arguments = self.arguments.join().strip()
        new_arguments = piece.arguments.strip()
        begins = bool(piece.name) and new_arguments.startswith("{")
        return begins and arguments not in ("{}", new_arguments) and self.is_over

    def add_piece(self, piece: _Piece, *, joins_names: bool) -> None:
        self.extra |= piece.extra
        if piece.id and not self.has_own_id:
            self.id, self.has_own_id = piece.id, True
        if piece.name:
            self.name = self.name + piece.name if joins_names else self.name or piece.name
        if piece.arguments:
            self.arguments.add_piece(piece.arguments)
            self._last_piece = piece.arguments

    def build_calls(self) -> Iterator[ToolCall]:
        """Yield the call, or each of several whose arguments came glued together."""
        texts = self._split_arguments(mend_surrogates(self.arguments.join()))
        for position, arguments in enumerate(texts):
            id = build_call_id() if position else self.id
            yield ToolCall(id=id, name=self.name, arguments=arguments or "{}")

    def _split_arguments(self, text: str) -> list[str]:
        if not text.strip() or _is_object(text):
            return [text.strip()]
        if _is_object(self._last_piece):
            # Each piece repeated what came before it, or an empty object stood for the real one.
            rest = text.removesuffix(self._last_piece)
            if rest.strip() in ("", "{}") or self._last_piece.startswith(rest):
                return [self._last_piece]
        values = _split_objects(text)
        if values:
            unique_texts = dict.fromkeys(json.dumps(value, ensure_ascii=False) for value in values)
            return list(unique_texts)
        unquoted_text = _unquote(text)
        return [unquoted_text if _is_object(unquoted_text) else text]


def _to_text(value: object) -> str:
    return "" if value is None or isinstance(value, (dict, list, bool)) else str(value).strip()


def _parse_index(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _to_arguments(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _is_object(text: str) -> bool:
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _split_objects(text: str) -> list[dict[str, object]]:
    """Return the objects that a text consists of, or nothing if it has anything else in it."""
    objects = []
    position = 0
    while position < len(text):
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        objects.append(value)
        position += len(text[position:]) - len(text[position:].lstrip(" \n\r\t,"))
    return objects


def _unquote(text: str) -> str:
    """Return the text inside JSON text that is a text itself."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


class CollectedText:
    """A text that is collected until the answer ends: reasoning, or the arguments of a call."""

    def __init__(self) -> None:
        self.char_count = 0
        self._pieces: list[str] = []

    def add_piece(self, piece: str) -> None:
        """Add a piece. Raises ProviderUnavailable beyond MAX_COLLECTED_CHARS."""
        self.char_count += len(piece)
        if self.char_count > MAX_COLLECTED_CHARS:
            raise ProviderUnavailable(
                "The provider sent reasoning or a tool call of more than"
                f" {MAX_COLLECTED_CHARS // 1_000_000} million characters."
            )
        self._pieces.append(piece)

    def join(self) -> str:
        """Return the whole text."""
        return "".join(self._pieces)
