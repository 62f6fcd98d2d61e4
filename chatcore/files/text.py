"""Recognize and decode text files. An encoding that is not UTF-8 or UTF-16 is a guess.

Of 31 short Western texts in Windows-1252 (café, 100 °C, Düsseldorf), charset-normalizer 3.5 takes
17 for Cyrillic or Chinese. So it is asked about Western texts only whether they are in a language
of another code page, and about others where many bytes above ASCII stand side by side.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

# Control characters that texts do not contain. Form feed and the escape of terminals are allowed.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_CHARS_PER_CONTROL = 1_000  # one such character in so many is an accident, not a binary file
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)

# What spreadsheets write, by Python's name of the encoding and by the web's.
_DENSE_ENCODINGS = {
    "cp932": "shift_jis",
    "gb18030": "gb18030",
    "big5": "big5",
    "cp949": "euc-kr",
    "cp1251": "windows-1251",
    "cp1253": "windows-1253",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp874": "windows-874",
    "koi8_r": "koi8-r",
}
_LATIN_ENCODINGS = {
    "cp1252": "windows-1252",
    "cp1250": "windows-1250",
    "cp1254": "windows-1254",
    "cp1257": "windows-1257",
}
_LANGUAGES = {
    "cp1250": {"Czech", "Slovak", "Polish", "Hungarian", "Slovene", "Croatian", "Romanian"},
    "cp1254": {"Turkish"},
    "cp1257": {"Lithuanian", "Latvian", "Estonian"},
}
_MIN_COHERENCE = 0.2  # of a language; a sentence of it has more
_SAMPLE_BYTES = 65_536
_MIN_DENSE_BYTES = 6
_HIGH_RUN = re.compile(rb"[\x80-\xff]{2,}")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")

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


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A text, and the web's name of its encoding where that was guessed."""

    text: str
    guessed_encoding: str = ""


def decode_text(data: bytes) -> str | None:
    """Return the text without its byte order mark, or None if the bytes are not a text."""
    decoded = read_text(data)
    return decoded.text if decoded else None


def read_text(data: bytes) -> DecodedText | None:
    """Return the text without its byte order mark, or None if the bytes are not a text.

    What is neither UTF-8 nor UTF-16 is in an encoding that spreadsheets write; which is a guess.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _build(_try_decode(data[len(mark) :], encoding))
    text = _try_decode(data, "utf-8")
    if text is None and (utf16_encoding := _detect_utf16(data)):
        text = _try_decode(data, utf16_encoding)
    if text is None and b"\x00" not in data:
        return _guess(data)
    if text and "\x00" in text and (utf16_encoding := _detect_utf16(data)):
        text = _try_decode(data, utf16_encoding)
    return _build(text)


def guess_media_type(name: str) -> str:
    """Return the media type for the extension of a text file; text/plain if it is unknown."""
    return _MEDIA_TYPES.get(PurePosixPath(name).suffix.lower(), "text/plain")


def _guess(data: bytes) -> DecodedText | None:
    """Return the text in the likeliest encoding: Windows-1252 unless another one is likelier."""
    candidates = [_find_encoding(data[:_SAMPLE_BYTES]), "cp1252", "latin-1"]
    for encoding in candidates:
        text = _try_decode(data, encoding)
        if text is not None:
            names = {**_DENSE_ENCODINGS, **_LATIN_ENCODINGS}
            return _build(text, names.get(encoding, "windows-1252"))
    return None


def _find_encoding(sample: bytes) -> str:
    import charset_normalizer  # takes a while to load, and few texts need it

    if b"\n" in sample:
        sample = sample[: sample.rindex(b"\n")]  # no sign is cut in two
    high_count = len(_HIGH_BYTE.findall(sample))
    side_by_side = sum(map(len, _HIGH_RUN.findall(sample)))
    is_dense = high_count >= _MIN_DENSE_BYTES and side_by_side * 2 >= high_count
    encodings = _DENSE_ENCODINGS if is_dense else _LATIN_ENCODINGS
    matches = charset_normalizer.from_bytes(sample, cp_isolation=list(encodings))
    for match in matches:
        is_known = match.coherence >= _MIN_COHERENCE
        if is_dense or (is_known and match.language in _LANGUAGES.get(match.encoding, ())):
            return str(match.encoding)
    return "cp1252"


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


def _build(text: str | None, guessed_encoding: str = "") -> DecodedText | None:
    """Return the text, or None if it contains NUL or too many control characters."""
    if text is None or "\x00" in text:
        return None
    control_count = len(_CONTROLS.findall(text))
    if control_count * _CHARS_PER_CONTROL > len(text):
        return None
    return DecodedText(text, guessed_encoding)
