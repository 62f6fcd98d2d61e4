"""Recognize and decode text files.

Of 31 short Western texts in Windows-1252 (café, 100 °C, Düsseldorf), charset-normalizer 3.5 takes
17 for Cyrillic or Chinese. Its choice cannot be weighed, so the order here stays.
"""

import re
from pathlib import PurePosixPath

# Control characters that texts do not contain. Form feed and the escape of terminals are allowed.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_CHARS_PER_CONTROL = 1_000  # one such character in so many is an accident, not a binary file
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)

# Only labels; none of these types would be executed by a browser.
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
    """Return the text without its byte order mark, or None if the bytes are not a text.

    Tries UTF-8, UTF-16, Windows-1252 and Latin-1, in this order.
    """
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
    """Return the media type for the extension of a text file; text/plain if it is unknown."""
    return _MEDIA_TYPES.get(PurePosixPath(name).suffix.lower(), "text/plain")


def _try_decode(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _detect_utf16(data: bytes) -> str | None:
    """Return the byte order of UTF-16 text without a mark, or None.

    Most characters of Western texts have a zero byte, always at the same (even or odd) place.
    """
    sample = data[:4_000]
    even_nuls, odd_nuls = sample[::2].count(0), sample[1::2].count(0)
    min_nuls = max(1, len(sample) * 2 // 5)
    has_nuls_on_one_side = (
        max(even_nuls, odd_nuls) >= min_nuls and min(even_nuls, odd_nuls) <= min_nuls // 10
    )
    if len(data) % 2 or not has_nuls_on_one_side:
        return None
    return "utf-16-le" if odd_nuls > even_nuls else "utf-16-be"


def _reject_binary(text: str | None) -> str | None:
    """Return the text, or None if it contains NUL or too many control characters."""
    if text is None or "\x00" in text:
        return None
    control_count = len(_CONTROLS.findall(text))
    return None if control_count * _CHARS_PER_CONTROL > len(text) else text
