"""Cut a long list in a JSON file into its items without parsing it, one item in memory at a time.

An item that is broken, or nested too deeply, then costs only itself, and its bytes are at hand for
whoever wants to see them.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

CHUNK_BYTES = 1024 * 1024
MAX_ITEM_BYTES = 100_000_000  # parsed, it takes some times as much memory
SHORT_BYTES = 100  # of a value that tells what a file is
HEAD_BYTES = 100_000  # what is kept of a longer one, so that it can be named

# A text, whose second quotation mark is missing where the buffer ends first; or a sign.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)|[\[\]{},:]', re.DOTALL)
_QUOTE, _COLON, _COMMA, _BRACKET = b'":,['
_ESCAPES_AT_END = re.compile(rb"(?<!\\)\\*+\Z")


def to_text(value: object) -> str:
    """Return a text as it is, and nothing for what is none."""
    return value if isinstance(value, str) else ""


def to_list(value: object) -> list[object]:
    """Return a list as it is, and an empty one for what is none."""
    return value if isinstance(value, list) else []


def to_dict(value: object) -> dict[str, object]:
    """Return an object as it is, and an empty one for what is none."""
    return value if isinstance(value, dict) else {}


def join_words(*texts: str) -> str:
    """Return the texts that have words, with a blank line between them."""
    return "\n\n".join(text for text in texts if text.strip())


class ListEndsEarly(ValueError):
    """The file ends in the middle of its list, or has no such list."""


@dataclass(frozen=True, slots=True)
class Item:
    """The bytes of an item; of one that is too long only the first."""

    raw: bytes
    is_too_long: bool = False


def split_items(stream: IO[bytes], path: Sequence[str] = ()) -> Iterator[Item]:
    """Yield the items of the list that stands at `path` (names of keys), the outermost by default.

    Raises ListEndsEarly.
    """
    yield from _Cutter(stream, path).cut()


class _Cutter:
    """The reading of one list. `start` is where the item begins in `buffer`, once it is open."""

    def __init__(self, stream: IO[bytes], path: Sequence[str]) -> None:
        self.stream = stream
        self.path = [key.encode() for key in path]
        self.buffer = b""
        self.position = self.start = 0
        self.depth = self.list_depth = 0  # the second is that of the list, while it is open
        self.head: bytes | None = None  # of an item that is too long

    def cut(self) -> Iterator[Item]:
        self._find_list()
        while True:
            sign, place = self._read_sign()
            if sign in b"[{":
                self.depth += 1
            elif sign in b",]}" and self.depth == self.list_depth:
                raw = self.buffer[self.start : place].strip()
                if self.head is not None:
                    yield Item(self.head, is_too_long=True)
                elif raw:
                    yield Item(raw)
                self.head, self.start = None, self.position
                if sign != _COMMA:
                    return
            elif sign in b"]}":
                self.depth -= 1

    def read_outline(self) -> dict[str, str | None]:
        outline: dict[str, str | None] = {}
        text, key, is_value = b"", "", False
        with contextlib.suppress(ListEndsEarly):
            while True:
                sign, place = self._read_sign()
                if sign == _QUOTE:
                    text = self.buffer[place + 1 : self.position - 1]
                    if is_value and len(text) <= SHORT_BYTES:
                        outline[key] = text.decode(errors="replace")
                elif sign == _COLON and self.depth == 1:
                    key = text.decode(errors="replace")
                    outline[key] = None
                elif sign in b"[{":
                    self.depth += 1
                elif sign in b"]}":
                    self.depth -= 1
                    if not self.depth:
                        break
                is_value = sign == _COLON and self.depth == 1
        return outline

    def _find_list(self) -> None:
        keys: list[bytes] = []  # of the objects that are open
        last_text = b""
        while True:
            sign, place = self._read_sign()
            if sign == _QUOTE:
                last_text = self.buffer[place + 1 : self.position - 1]
            elif sign == _COLON and keys:
                keys[-1] = last_text
            elif sign in b"[{":
                self.depth += 1
                if sign == _BRACKET and keys == self.path:
                    self.list_depth, self.start = self.depth, self.position
                    return
                keys.append(b"")
            elif sign in b"]}" and keys:
                self.depth -= 1
                keys.pop()

    def _read_sign(self) -> tuple[int, int]:
        """Return the next sign or the first of the next text, and its place in the buffer."""
        while True:
            match = _TOKEN.search(self.buffer, self.position)
            if match is not None and match.group(1) != b"":
                self.position = match.end()
                return self.buffer[match.start()], match.start()
            self._read_more(match.start() if match else len(self.buffer))

    def _read_more(self, token_start: int) -> None:
        """Add to the buffer, and drop what nobody needs any more. Raises ListEndsEarly."""
        kept_from = self.start if self.list_depth else token_start
        if len(self.buffer) - kept_from > MAX_ITEM_BYTES:
            self.head = self.head or self.buffer[kept_from : kept_from + HEAD_BYTES]
            kept_from = token_start
            if len(self.buffer) - token_start > MAX_ITEM_BYTES:
                self.buffer, kept_from, token_start = _shorten_text(self.buffer), 0, 0
        # Twice as much each time, so that a long text is looked at a few times only.
        more = self.stream.read(max(CHUNK_BYTES, len(self.buffer) - kept_from))
        if not more:
            raise ListEndsEarly("the file ends in the middle")
        self.buffer = self.buffer[kept_from:] + more
        self.start, self.position = 0, token_start - kept_from


def read_outline(stream: IO[bytes]) -> dict[str, str | None]:
    """Return the keys of a file's outermost object, with their values where these are short texts.

    Of a file that ends early it is what stands before its end.
    """
    return _Cutter(stream, ()).read_outline()


def read_lines(stream: IO[bytes]) -> Iterator[Item]:
    """Yield the lines that are not blank."""
    while line := stream.readline(MAX_ITEM_BYTES + 1):
        if len(line) > MAX_ITEM_BYTES:
            head = line[:HEAD_BYTES]
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_ITEM_BYTES)
            yield Item(head, is_too_long=True)
        elif line.strip():
            yield Item(line.strip())


def _shorten_text(buffer: bytes) -> bytes:
    """Return an open text without its words; an escape at its end stays open."""
    escapes = _ESCAPES_AT_END.search(buffer)
    is_escaped = escapes is not None and len(escapes.group()) % 2 == 1
    return b'"\\' if is_escaped else b'"'
