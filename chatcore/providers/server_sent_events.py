"""Split the bytes of a response into server-sent events (WHATWG HTML, section 9.2)."""

from chatcore.providers.errors import ProviderUnavailable

MAX_EVENT_BYTES = 16_000_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Event = tuple[bytes, bytes]
"""An event's name, b"" if it has none, and its data, which should be UTF-8."""


class EventSplitter:
    """Splits a stream into events, however its bytes are cut.

    Events without data are left out. `has_events` is True once one was found.
    """

    def __init__(self) -> None:
        self.has_events = False
        self._rest = bytearray()
        self._buffer = bytearray()
        self._search_start = 0
        self._has_begun = False
        self._ends_with_return = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that the bytes complete.

        Raises ProviderUnavailable for an event of more than MAX_EVENT_BYTES.
        """
        if b"\r" in chunk or self._ends_with_return:
            chunk = self._normalize_line_ends(chunk)
        block_text: bytes | None
        if not self._buffer and chunk.endswith(b"\n\n"):
            block_text = chunk[:-2]
        else:
            self._buffer += chunk
            block_text = self._take_complete_blocks()
        if block_text is None:
            return []
        if not self._has_begun:
            self._has_begun = True
            block_text = block_text.removeprefix(_BYTE_ORDER_MARK)
        return self._parse_blocks(block_text)

    def finish(self) -> list[Event]:
        """Return the event at the end of the stream, which may lack its blank line."""
        block_text = bytes(self._buffer)
        self._buffer.clear()
        return self._parse_blocks(block_text)

    def take_rest(self) -> bytes:
        """Return a body in which no event was found."""
        return bytes(self._rest).removeprefix(_BYTE_ORDER_MARK)

    def _parse_blocks(self, text: bytes) -> list[Event]:
        events = [event for block in text.split(b"\n\n") if (event := _parse_block(block))]
        if events:
            self.has_events = True
        elif not self.has_events and len(self._rest) < MAX_EVENT_BYTES:
            self._rest += text + b"\n\n"
        return events

    def _normalize_line_ends(self, chunk: bytes) -> bytes:
        """Return the bytes with every line end as one line feed.

        A return at the end of a chunk ends its line at once; a line feed that follows it in the
        next chunk belongs to it.
        """
        if chunk and self._ends_with_return:
            self._ends_with_return = False
            chunk = chunk.removeprefix(b"\n")
        if chunk:
            self._ends_with_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take_complete_blocks(self) -> bytes | None:
        """Remove and return what stands before the last blank line of the buffer, if any."""
        # The first of the two line ends may have come before this chunk.
        end = self._buffer.rfind(b"\n\n", self._search_start)
        if end < 0:
            self._search_start = max(0, len(self._buffer) - 1)
            if len(self._buffer) > MAX_EVENT_BYTES:
                raise ProviderUnavailable(
                    "The provider sent an event of more than"
                    f" {MAX_EVENT_BYTES // 1_000_000} million bytes."
                )
            return None
        block_text = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        self._search_start = max(0, len(self._buffer) - 1)
        return block_text


def _parse_block(block: bytes) -> Event | None:
    """Return the event of the lines between two blank lines, or None if it has no data."""
    name = b""
    data_lines = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data_lines.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    if not data_lines:
        return None
    return name, b"\n".join(data_lines)
