"""The one cut for tool results: head kept, marker appended, before anything is stored (FEAT-011, Tool Result Truncation)."""

import re
from typing import Any

TOOL_RESULT_MAX_CHARS = 30_000
MARKER = "\n\n[... content truncated, showing first {kept} characters of {total} total ...]"

_MARKER_PATTERN = re.compile(
    re.escape(MARKER).replace(r"\{kept\}", r"(\d+)").replace(r"\{total\}", r"(\d+)") + r"\Z"
)
_MARKER_MAX_CHARS = 120  # characters; longer than any marker


def cut_tool_result(text: str, limit: int = TOOL_RESULT_MAX_CHARS) -> tuple[str, int | None]:
    """Keep the first `limit` characters (code points). Returns the text to store, and its original length when it was cut.

    Idempotent: a text that this function already cut comes back unchanged. Never raises. FEAT-011, Tool Result Truncation Rules.
    """
    total = len(text)
    if total <= limit:
        return text, None
    if total <= limit + _MARKER_MAX_CHARS:
        match = _MARKER_PATTERN.search(text, limit)
        if match and match.start() == limit and int(match[1]) == limit:
            return text, int(match[2])
    return text[:limit] + MARKER.format(kept=limit, total=total), total


def clean_text(text: str) -> str:
    """Drop NUL and lone surrogates, which no database stores and no provider accepts."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    return text


def clean_json(value: Any) -> Any:
    """The same JSON value with every text in it, keys too, made storable."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    return value
