"""Store long texts in little room, with every sign that they have."""

import zlib

FAST = 1  # of zlib's levels; what is sent is mostly prose, which the others make little smaller


def pack_text(text: str | bytes) -> bytes:
    """Return a text, or its bytes in UTF-8, in the form in which it is stored."""
    content = text if isinstance(text, bytes) else text.encode(errors="replace")
    return zlib.compress(content, FAST)


def unpack_text(content: bytes | memoryview | None) -> str | None:
    """Return a stored text; None where there is none."""
    return None if content is None else zlib.decompress(content).decode(errors="replace")
