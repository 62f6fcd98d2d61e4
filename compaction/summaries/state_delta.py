"""Takes the delta of the structured state off an answer: leniently, and without ever losing the summary over it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compaction.core.state import ENTRY_CHARS, ITEM_CHARS, SECTIONS, Change, Delta, Working

MOST_ITEMS = 100  # of a list; what a broken model repeats is not kept

_FENCED = re.compile(r"```[ \t]*(\w*)[ \t]*\n(.*?)(?:\n?```|\Z)", re.DOTALL)
_BARE = re.compile(
    rf"^\{{\s*(?:\"(?:state|memory|\w*?(?:{'|'.join(SECTIONS)}))\"|\}}\s*\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_WORDS = ("text", "sentence", "title", "description", "content", "summary", "name")


def split(text: str) -> tuple[str, str | None]:
    """The summary, and the block that stood beside it; None where there is none. What is cut off is never part of the summary."""
    whole = _loaded(text) if text.lstrip().startswith("{") else None
    if isinstance(whole, Mapping) and isinstance(whole.get("summary"), str):
        return whole["summary"], text
    for found in reversed(list(_FENCED.finditer(text))):
        ends_it = not text[found.end() :].strip() and found[1].lower() in ("json", "")
        if (ends_it and found[2].lstrip().startswith("{")) or _is_delta(_loaded(found[2])):
            return (text[: found.start()] + text[found.end() :]).strip(), found[2]
    bare = _BARE.search(text)
    return (text[: bare.start()].strip(), text[bare.start() :]) if bare else (text, None)


def parsed(block: str, working: Working) -> Delta:
    """The delta in a block; an empty one where it cannot be read. Numbers name items of the state that the model was shown."""
    value = _loaded(block)
    if not isinstance(value, Mapping):
        return Delta()
    lists = value["state"] if isinstance(value.get("state"), Mapping) else value
    changes = {
        name: _change(each, working.state.get(name, ()))
        for key, each in lists.items()
        if (name := _section(key))
    }
    return Delta(sections=changes, memory=tuple(_sentences(value.get("memory"), ENTRY_CHARS)))


def _loaded(block: str) -> Any:
    """The first JSON value of a text, also where commas too many stand in it; None for none."""
    for candidate in (block, _TRAILING_COMMA.sub(r"\1", block)):
        try:
            return json.JSONDecoder(strict=False).raw_decode(candidate.strip())[0]
        except (ValueError, RecursionError):
            continue
    return None


def _is_delta(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        key == "memory" or _section(key) or isinstance(value.get("state"), Mapping) for key in value
    )


def _section(key: Any) -> str | None:
    """`keyDecisions` and `Open questions` are known too."""
    return next((name for name in SECTIONS if str(key).casefold().endswith(name)), None)


def _change(value: Any, items: tuple[str, ...]) -> Change:
    if not isinstance(value, Mapping):
        return Change(add=tuple(_sentences(value, ITEM_CHARS)))
    return Change(
        add=tuple(_sentences(value.get("add"), ITEM_CHARS)),
        update=tuple(_updates(value.get("update"), items)),
        remove=tuple(_named(each, items) for each in _listed(value.get("remove"))),
    )


def _updates(value: Any, items: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    pairs = (
        value.items() if isinstance(value, Mapping) else [_pair(each) for each in _listed(value)]
    )
    for old, new in pairs:
        for sentence in _sentences([new], ITEM_CHARS):
            yield _named(old, items), sentence


def _pair(value: Any) -> tuple[Any, Any]:
    """`{"item": 1, "text": …}`, `{"from": …, "to": …}` or a new sentence alone."""
    if not isinstance(value, Mapping):
        return "", value
    old = next(
        (value[name] for name in ("item", "number", "id", "from", "old") if name in value), ""
    )
    return old, next((value[name] for name in ("to", "new") if name in value), value)


def _named(value: Any, items: tuple[str, ...]) -> str:
    """The item that a number or its own words name."""
    if isinstance(value, Mapping):
        value = next(
            (value[name] for name in ("item", "number", "id", *_WORDS) if name in value), ""
        )
    try:
        number = int(str(value).strip().rstrip("."))
    except ValueError:
        return " ".join(str(value).split())
    return items[number - 1] if 1 <= number <= len(items) else ""


def _sentences(value: Any, most_chars: int) -> Iterator[str]:
    """Texts of a list, or of one text, on one line each and not too long."""
    for each in _listed(value):
        words = (
            next((each[name] for name in _WORDS if name in each), "")
            if isinstance(each, Mapping)
            else each
        )
        if isinstance(words, str) and (clean := " ".join(words.replace("\0", "").split())):
            yield clean[:most_chars]


def _listed(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    return value[:MOST_ITEMS] if isinstance(value, list) else (value,)
