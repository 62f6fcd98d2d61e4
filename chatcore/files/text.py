"""Which bytes are text, and what they say."""

import re
from pathlib import PurePosixPath

_CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]"
)  # none of a text's; form feed and the terminal's escape are
_ALLOWED_SHARE = 1_000  # one such character among so many is an accident, not a binary file
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))

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


def read(data: bytes) -> str | None:
    """The text, without a byte order mark; None when these bytes are none. UTF-8, UTF-16, else Windows-1252, which has any Latin-1."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _text(_decoded(data[len(mark) :], encoding))
    found = _decoded(data, "utf-8")
    if found is None and (order := _unmarked_utf16(data)):
        found = _decoded(data, order)
    if found is None and b"\x00" not in data:
        found = _decoded(data, "cp1252") or _decoded(data, "latin-1")
    elif found and "\x00" in found and (order := _unmarked_utf16(data)):
        found = _decoded(data, order)
    return _text(found)


def media_type(name: str) -> str:
    """By the extension, out of a few harmless ones."""
    return _MEDIA_TYPES.get(PurePosixPath(name).suffix.lower(), "text/plain")


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _unmarked_utf16(data: bytes) -> str | None:
    """Western text in UTF-16 has a NUL in every second place."""
    sample = data[:4_000]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    enough = max(1, len(sample) * 2 // 5)
    if len(data) % 2 or max(even, odd) < enough or min(even, odd) > enough // 10:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _text(found: str | None) -> str | None:
    """What may be stored; binary files say too much that no text says."""
    if (
        found is None
        or "\x00" in found
        or len(_CONTROLS.findall(found)) * _ALLOWED_SHARE > len(found)
    ):
        return None
    return found
