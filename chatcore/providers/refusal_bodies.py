"""Find what an error's body says, wherever its server put it."""

import json
import re
from collections.abc import Iterator
from html import unescape

_MAX_DEPTH = 6
# In the order in which they are asked. A gateway's own sentence says little beside that of the
# server behind it, so both are told.
_REASON_MEMBERS = (
    "message",
    "msg",
    "detail",
    "error_message",
    "error_msg",
    "errorMessage",
    "Message",
    "status_msg",
    "description",
    "error_description",
    "error",
    "errors",
    "title",
    "reason",
    "details",
    "body",
    "base_resp",
    "innererror",
)
_INNER_MEMBERS = ("raw", "metadata", "upstream_error", "original_error", "provider_error")
_FIELD = re.compile(r"[A-Za-z][\w.-]{0,59}")
_USUAL_FIELDS = ("messages", "model", "input", "prompt")
_PAGE = re.compile(r"\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_TITLE = re.compile(r"<(?:title|h1)[^>]{0,200}>([^<]{1,200})</", re.IGNORECASE)


def find_reason(body: object) -> str:
    """Return the sentence for people in a body, or an empty text.

    It may stand in a list, in JSON inside a text, behind the reason of a gateway, or be the title
    of a web page.
    """
    return _find_reason(body, _MAX_DEPTH)


def iterate_objects(body: object) -> Iterator[dict[str, object]]:
    """Yield the objects in a body, from the outermost to those in JSON inside a text."""
    return _iterate_objects(body, _MAX_DEPTH)


def _find_reason(value: object, depth: int) -> str:
    value = _parse_text(value)
    if depth <= 0 or value is None or isinstance(value, bool):
        return ""
    if isinstance(value, str):
        if value.lstrip().startswith("{"):  # JSON that is cut off, or broken
            return ""
        return _read_page(value) if _PAGE.match(value) else value.strip()
    if isinstance(value, list):
        reasons = filter(None, (_find_reason(element, depth - 1) for element in value[:20]))
        return "; ".join(dict.fromkeys(reasons))
    if not isinstance(value, dict):
        return ""
    reason = next(
        filter(None, (_find_reason(value.get(name), depth - 1) for name in _REASON_MEMBERS)), ""
    )
    inner_reason = next(
        filter(None, (_find_reason(value.get(name), depth - 1) for name in _INNER_MEMBERS)), ""
    )
    if reason and inner_reason and inner_reason not in reason:
        reason = f"{reason}: {inner_reason}"
    field = _find_field(value)
    if field and reason and field not in reason:
        return f"{field}: {reason}"
    return reason or inner_reason


def _find_field(fields: dict[str, object]) -> str:
    """Return the field of the request of which an error speaks, or an empty text.

    Pydantic's is `loc` (`["body", "max_tokens"]`), OpenAI's `param`. A field that every request has
    says no more than the reason.
    """
    place = fields.get("loc")
    if isinstance(place, list):
        return ".".join(str(part) for part in place[:_MAX_DEPTH] if part != "body")
    named = fields.get("param")
    is_field = isinstance(named, str) and _FIELD.fullmatch(named)
    return str(named) if is_field and named not in _USUAL_FIELDS else ""


def _iterate_objects(value: object, depth: int) -> Iterator[dict[str, object]]:
    value = _parse_text(value)
    if depth <= 0:
        return
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for element in value[:50]:
            yield from _iterate_objects(element, depth - 1)


def _parse_text(value: object) -> object:
    """Return the object or list that a text holds, perhaps behind some words, or the value."""
    if not isinstance(value, str) or not value.rstrip().endswith(("}", "]")):
        return value
    start = min((place for sign in "{[" if (place := value.find(sign)) >= 0), default=-1)
    try:
        parsed = json.loads(value[start:]) if start >= 0 else value
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, (dict, list)) and _has_reason(parsed) else value


def _has_reason(value: object) -> bool:
    """Return whether parsing a text is a gain: a sentence may end in brackets of its own."""
    return not isinstance(value, list) or any(isinstance(element, dict) for element in value)


def _read_page(page: str) -> str:
    match = _TITLE.search(page)
    return f"a web page: {unescape(match[1]).strip()}" if match else ""
