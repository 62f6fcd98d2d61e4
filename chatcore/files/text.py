"""Which bytes are text, and what they say."""

import re
from pathlib import PurePosixPath

_CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]"
)  # none of a text's; form feed and the terminal's escape are
_CHARS_PER_CONTROL = 1_000  # one such character among so many is an accident, not a binary file
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)

# A label only: never what a browser would run.
_MEDIA_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
}


def decode_text(data: bytes) -> str | None:
    """The text, without a byte order mark; None when these bytes are none. UTF-8, UTF-16, else Windows-1252, which has any Latin-1."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _reject_binary(_try_decode(data[len(mark) :], encoding))
    text = _try_decode(data, "utf-8")
    if text is None and (utf16_encoding := _detect_utf16(data)):
        text = _try_decode(data, utf16_encoding)
    if text is None and b"\x00" not in data:
        text = _try_decode(data, "cp1252") or _try_decode(data, "latin-1")
    elif text and "\x00" in text and (utf16_encoding := _detect_utf16(data)):
        text = _try_decode(data, utf16_encoding)
    return _reject_binary(text)


def guess_media_type(name: str) -> str:
    """By the extension, out of a few harmless ones."""
    return _MEDIA_TYPES.get(PurePosixPath(name).suffix.lower(), "text/plain")


def _try_decode(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _detect_utf16(data: bytes) -> str | None:
    """Western text in UTF-16 has a NUL in every second place."""
    sample = data[:4_000]
    even_nuls, odd_nuls = sample[::2].count(0), sample[1::2].count(0)
    min_nuls = max(1, len(sample) * 2 // 5)
    if (
        len(data) % 2
        or max(even_nuls, odd_nuls) < min_nuls
        or min(even_nuls, odd_nuls) > min_nuls // 10
    ):
        return None
    return "utf-16-le" if odd_nuls > even_nuls else "utf-16-be"


def _reject_binary(text: str | None) -> str | None:
    """What may be stored; binary files say too much that no text says."""
    if (
        text is None
        or "\x00" in text
        or len(_CONTROLS.findall(text)) * _CHARS_PER_CONTROL > len(text)
    ):
        return None
    return text
