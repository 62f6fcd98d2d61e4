"""Put the tool calls of a streamed chat completion together, in every form that servers send.

By the protocol each piece names the call's index, and the first one its id and name. Servers leave
out the index, give every call the same one, send the id later than the name, a new id with each
piece, the name with each piece, all calls' arguments glued together, or arguments as an object.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from chatcore.providers.answer_reader import build_call_id
from chatcore.providers.base import ToolCall, mend_surrogates
from chatcore.providers.collected_text import CollectedText
from chatcore.providers.errors import ProviderUnavailable

_DECODER = json.JSONDecoder()


class CallCollector:
    """Collects the calls of one answer while their pieces arrive."""

    def __init__(self, tool_names: frozenset[str]) -> None:
        self._tool_names = tool_names
        self._calls: list[_PartialCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def extras(self) -> dict[str, dict[str, Any]]:
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
