"""Cut tool results to a limit, and remove characters that cannot be stored.

The rules of the cut are those of FEAT-011 (docs/origins.md, Tool Result Truncation Rules).
"""

import json
import logging
import math
import re
from typing import Any

logger = logging.getLogger(__name__)

TOOL_RESULT_MAX_CHARS = 30_000
MARKER = "\n\n[... content truncated, showing first {kept} characters of {total} total ...]"

_MARKER_PATTERN = re.compile(
    re.escape(MARKER).replace(r"\{kept\}", r"(\d+)").replace(r"\{total\}", r"(\d+)") + r"\Z"
)
_MARKER_MAX_CHARS = 120  # characters; longer than any marker
# What `chatcore/tools/output.py` writes behind a result whose whole text is kept, or could not be.
_KEPT_NOTE_PATTERN = re.compile(
    r"\n\n\[The (?:whole output is|first [0-9,]+ of [0-9,]+ characters are)"
    r" (?:not )?kept: [^\[\]]{1,100}\]\Z"
)
_KEPT_NOTE_MAX_CHARS = 220


def cut_tool_result(text: str, limit: int = TOOL_RESULT_MAX_CHARS) -> tuple[str, int | None]:
    """Return the first `limit` characters (code points) with a marker, and the original length.

    The length is None if nothing was cut. A text that this function has already cut is returned
    unchanged, with the length from its marker. Never raises.
    """
    total = len(text)
    if total <= limit:
        return text, None
    if total <= limit + _MARKER_MAX_CHARS:
        match = _MARKER_PATTERN.search(text, limit)
        if match and match.start() == limit and int(match[1]) == limit:
            return text, int(match[2])
    return text[:limit] + MARKER.format(kept=limit, total=total), total


def strip_kept_note(text: str) -> str:
    """Return a stored result without the note at its end that says where the whole text is."""
    match = _KEPT_NOTE_PATTERN.search(text, max(0, len(text) - _KEPT_NOTE_MAX_CHARS))
    return text[: match.start()] if match else text


def to_text(value: object) -> str:
    """Return any value as a text: null as none, bytes as UTF-8, the rest as JSON. Never raises."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).decode(errors="replace")
        return json.dumps(value, ensure_ascii=False, default=str)
    except Exception:  # whatever an object's own methods raise
        logger.exception("a value of type %s is no text", type(value).__name__)
        return f"[{type(value).__name__}]"


def clean_text(text: str) -> str:
    """Return the text without NUL and lone surrogates, which cannot be stored or sent."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    return text


def clean_json(value: object) -> Any:
    """Return the value as JSON with `clean_text` applied to every text in it, keys too.

    What JSON cannot hold becomes a text. Never raises.
    """
    try:
        return _clean_json(value)
    except RecursionError:
        return clean_text(to_text(value))


def _clean_json(value: object) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, list | tuple):
        return [_clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(to_text(key)): _clean_json(item) for key, item in value.items()}
    if isinstance(value, float) and math.isfinite(value):
        return value
    return clean_text(to_text(value))
