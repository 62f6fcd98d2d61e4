"""Split the delta of the structured state from an answer, and parse it.

Models write it in many forms, so the parsing is lenient. What cannot be parsed is left out, and the
summary is never lost because of it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from compaction.systems.lota.state import (
    ENTRY_CHARS,
    ITEM_CHARS,
    SECTIONS,
    SectionChange,
    StateDelta,
    StructuredState,
)

MAX_ITEMS = 100  # of a list; a broken model may repeat itself without end

_FENCED_BLOCK = re.compile(r"```[ \t]*+(\w*+)[ \t]*+\n(.*?)(?:\n?```|\Z)", re.DOTALL)
_BARE_DELTA = re.compile(
    rf"^\{{\s*(?:\"(?:state|memory|\w*?(?:{'|'.join(SECTIONS)}))\"|\}}\s*\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_TEXT_KEYS = ("text", "sentence", "title", "description", "content", "summary", "name")


def split_delta(text: str) -> tuple[str, str | None]:
    """Return the summary and the block with the delta, which is None if there is none.

    A block that was cut off is split off too, so that it never becomes part of the summary.
    """
    document = _parse_json(text) if text.lstrip().startswith("{") else None
    if isinstance(document, Mapping) and isinstance(document.get("summary"), str):
        return document["summary"], text
    for match in reversed(list(_FENCED_BLOCK.finditer(text))):
        is_last = not text[match.end() :].strip() and match[1].lower() in ("json", "")
        if (is_last and match[2].lstrip().startswith("{")) or _is_delta(_parse_json(match[2])):
            return (text[: match.start()] + text[match.end() :]).strip(), match[2]
    bare_match = _BARE_DELTA.search(text)
    if bare_match:
        return text[: bare_match.start()].strip(), text[bare_match.start() :]
    return text, None


def parse_delta(block: str, structured_state: StructuredState) -> StateDelta:
    """Return the delta in a block; an empty one if it cannot be parsed.

    Numbers in it refer to the items of `structured_state`, as the prompt numbered them.
    """
    value = _parse_json(block)
    if not isinstance(value, Mapping):
        return StateDelta()
    lists = value["state"] if isinstance(value.get("state"), Mapping) else value
    changes: dict[str, SectionChange] = {}
    for key, section_change in lists.items():
        name = _find_section(key)
        if name is not None:
            items = structured_state.sections.get(name, ())
            changes[name] = _parse_change(section_change, items)
    memory = tuple(_iterate_sentences(value.get("memory"), ENTRY_CHARS))
    return StateDelta(sections=changes, memory=memory)


def _parse_json(block: str) -> object:
    """Return the first JSON value of a text, trailing commas allowed; None if there is none."""
    for candidate in (block, _TRAILING_COMMA.sub(r"\1", block)):
        try:
            return json.JSONDecoder(strict=False).raw_decode(candidate.strip())[0]
        except (ValueError, RecursionError):
            continue
    return None


def _is_delta(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    has_known_key = any(key == "memory" or _find_section(key) for key in value)
    return has_known_key or isinstance(value.get("state"), Mapping)


def _find_section(key: object) -> str | None:
    # Models also write `keyDecisions` or `Open questions`.
    return next((name for name in SECTIONS if str(key).casefold().endswith(name)), None)


def _parse_change(value: object, items: tuple[str, ...]) -> SectionChange:
    if not isinstance(value, Mapping):
        return SectionChange(add=tuple(_iterate_sentences(value, ITEM_CHARS)))
    removals = _wrap_list(value.get("remove"))
    return SectionChange(
        add=tuple(_iterate_sentences(value.get("add"), ITEM_CHARS)),
        update=tuple(_parse_updates(value.get("update"), items)),
        remove=tuple(_resolve_item(reference, items) for reference in removals),
    )


def _parse_updates(value: object, items: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        pairs = [_parse_update(update) for update in _wrap_list(value)]
    for old, new in pairs:
        for sentence in _iterate_sentences([new], ITEM_CHARS):
            yield _resolve_item(old, items), sentence


def _parse_update(value: object) -> tuple[object, object]:
    """Return the old and the new item of `{"item": 1, "text": …}` or `{"from": …, "to": …}`.

    A new sentence alone has no old item.
    """
    if not isinstance(value, Mapping):
        return "", value
    old = _find_first(value, ("item", "number", "id", "from", "old"), "")
    new = _find_first(value, ("to", "new"), value)
    return old, new


def _resolve_item(value: object, items: tuple[str, ...]) -> str:
    """Return the item that a number or its own text refers to."""
    if isinstance(value, Mapping):
        value = _find_first(value, ("item", "number", "id", *_TEXT_KEYS), "")
    try:
        number = int(str(value).strip().rstrip("."))
    except ValueError:
        return " ".join(str(value).split())
    return items[number - 1] if 1 <= number <= len(items) else ""


def _iterate_sentences(value: object, max_chars: int) -> Iterator[str]:
    """Yield the texts of a list, or one text, each on one line and cut to `max_chars`."""
    for entry in _wrap_list(value):
        text = _find_first(entry, _TEXT_KEYS, "") if isinstance(entry, Mapping) else entry
        if not isinstance(text, str):
            continue
        sentence = " ".join(text.replace("\0", "").split())
        if sentence:
            yield sentence[:max_chars]


def _find_first(value: Mapping[str, object], names: Iterable[str], default: object) -> object:
    return next((value[name] for name in names if name in value), default)


def _wrap_list(value: object) -> Iterable[object]:
    if value is None:
        return ()
    return value[:MAX_ITEMS] if isinstance(value, list) else (value,)
