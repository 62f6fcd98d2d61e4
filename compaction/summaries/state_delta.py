"""Takes the delta of the structured state off an answer: leniently, and without ever losing the summary over it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compaction.core.state import (
    ENTRY_CHARS,
    ITEM_CHARS,
    SECTIONS,
    SectionChange,
    StateDelta,
    StructuredState,
)

MAX_ITEMS = 100  # of a list; what a broken model repeats is not kept

_FENCED_BLOCK = re.compile(r"```[ \t]*(\w*)[ \t]*\n(.*?)(?:\n?```|\Z)", re.DOTALL)
_BARE_DELTA = re.compile(
    rf"^\{{\s*(?:\"(?:state|memory|\w*?(?:{'|'.join(SECTIONS)}))\"|\}}\s*\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_TEXT_KEYS = ("text", "sentence", "title", "description", "content", "summary", "name")


def split_delta(text: str) -> tuple[str, str | None]:
    """The summary, and the block that stood beside it; None where there is none. What is cut off is never part of the summary."""
    document = _parse_json(text) if text.lstrip().startswith("{") else None
    if isinstance(document, Mapping) and isinstance(document.get("summary"), str):
        return document["summary"], text
    for match in reversed(list(_FENCED_BLOCK.finditer(text))):
        is_last = not text[match.end() :].strip() and match[1].lower() in ("json", "")
        if (is_last and match[2].lstrip().startswith("{")) or _is_delta(_parse_json(match[2])):
            return (text[: match.start()] + text[match.end() :]).strip(), match[2]
    bare_match = _BARE_DELTA.search(text)
    return (
        (text[: bare_match.start()].strip(), text[bare_match.start() :])
        if bare_match
        else (text, None)
    )


def parse_delta(block: str, structured_state: StructuredState) -> StateDelta:
    """The delta in a block; an empty one where it cannot be read. Numbers name items of the state that the model was shown."""
    value = _parse_json(block)
    if not isinstance(value, Mapping):
        return StateDelta()
    lists = value["state"] if isinstance(value.get("state"), Mapping) else value
    changes = {
        name: _parse_change(section_change, structured_state.sections.get(name, ()))
        for key, section_change in lists.items()
        if (name := _find_section(key))
    }
    return StateDelta(
        sections=changes, memory=tuple(_iterate_sentences(value.get("memory"), ENTRY_CHARS))
    )


def _parse_json(block: str) -> Any:
    """The first JSON value of a text, also where commas too many stand in it; None for none."""
    for candidate in (block, _TRAILING_COMMA.sub(r"\1", block)):
        try:
            return json.JSONDecoder(strict=False).raw_decode(candidate.strip())[0]
        except (ValueError, RecursionError):
            continue
    return None


def _is_delta(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        key == "memory" or _find_section(key) or isinstance(value.get("state"), Mapping)
        for key in value
    )


def _find_section(key: Any) -> str | None:
    """`keyDecisions` and `Open questions` are known too."""
    return next((name for name in SECTIONS if str(key).casefold().endswith(name)), None)


def _parse_change(value: Any, items: tuple[str, ...]) -> SectionChange:
    if not isinstance(value, Mapping):
        return SectionChange(add=tuple(_iterate_sentences(value, ITEM_CHARS)))
    return SectionChange(
        add=tuple(_iterate_sentences(value.get("add"), ITEM_CHARS)),
        update=tuple(_parse_updates(value.get("update"), items)),
        remove=tuple(
            _resolve_item(reference, items) for reference in _wrap_list(value.get("remove"))
        ),
    )


def _parse_updates(value: Any, items: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    pairs = (
        value.items()
        if isinstance(value, Mapping)
        else [_parse_update(update) for update in _wrap_list(value)]
    )
    for old, new in pairs:
        for sentence in _iterate_sentences([new], ITEM_CHARS):
            yield _resolve_item(old, items), sentence


def _parse_update(value: Any) -> tuple[Any, Any]:
    """`{"item": 1, "text": …}`, `{"from": …, "to": …}` or a new sentence alone."""
    if not isinstance(value, Mapping):
        return "", value
    old = next(
        (value[name] for name in ("item", "number", "id", "from", "old") if name in value), ""
    )
    return old, next((value[name] for name in ("to", "new") if name in value), value)


def _resolve_item(value: Any, items: tuple[str, ...]) -> str:
    """The item that a number or its own words name."""
    if isinstance(value, Mapping):
        value = next(
            (value[name] for name in ("item", "number", "id", *_TEXT_KEYS) if name in value), ""
        )
    try:
        number = int(str(value).strip().rstrip("."))
    except ValueError:
        return " ".join(str(value).split())
    return items[number - 1] if 1 <= number <= len(items) else ""


def _iterate_sentences(value: Any, max_chars: int) -> Iterator[str]:
    """Texts of a list, or of one text, on one line each and not too long."""
    for entry in _wrap_list(value):
        text = (
            next((entry[name] for name in _TEXT_KEYS if name in entry), "")
            if isinstance(entry, Mapping)
            else entry
        )
        if isinstance(text, str) and (sentence := " ".join(text.replace("\0", "").split())):
            yield sentence[:max_chars]


def _wrap_list(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    return value[:MAX_ITEMS] if isinstance(value, list) else (value,)
