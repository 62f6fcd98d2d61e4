"""Takes a summary out of what models put around it: thoughts, fences, JSON, tags, an announcement."""

import json
import re
from collections.abc import Mapping
from typing import Any

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_END_OF_THOUGHT = re.compile(r"\A.*</(think|thinking|reasoning)>", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"</?\s*(transcript|existing-state|conversation_summary)\s*>", re.IGNORECASE)
_SPECIAL = re.compile(r"<\|[\w ]{1,40}\|>|</?s>|\[/?INST\]")
_FENCE = re.compile(r"\A(`{3,}|~{3,})[^\n`]*\n(.*?)\n?\1\Z", re.DOTALL)
_TAGGED = re.compile(r"\A<(summary|output|answer|result)>(.*)</\1>\Z", re.IGNORECASE | re.DOTALL)
_ANNOUNCED = re.compile(
    r"\A(?:(?:sure|certainly|of course|okay|ok)\b[^\n]{0,40}?[,.!:]\s*)?(?:here(?: is|['’]s)|below is)\b[^\n]{0,60}:\s*\n",
    re.IGNORECASE,
)
_KEYS = ("summary", "text", "content", "result", "output", "answer")
MOST_LAYERS = 4


def unwrapped(text: str) -> str:
    """The summary alone; a text that is wrapped in nothing is given back as it is."""
    words = _TAGS.sub("", _SPECIAL.sub("", without_thoughts(text))).strip()
    for _ in range(MOST_LAYERS):
        before, words = words, _inner(words).strip()
        if words == before:
            break
    return words


def without_thoughts(words: str) -> str:
    """The text without reasoning blocks, closed or not, and without the end of one whose beginning the template swallowed."""
    return _END_OF_THOUGHT.sub("", _THOUGHT.sub("", words)).strip()


def _inner(words: str) -> str:
    if found := _FENCE.match(words):
        return found[2]
    if found := _TAGGED.match(words):
        return found[2]
    if words.startswith(("{", "[", '"')):
        return _from_json(words)
    return _ANNOUNCED.sub("", words, count=1)


def _from_json(words: str) -> str:
    try:
        value = json.loads(words, strict=False)
    except (ValueError, RecursionError):
        return words
    if isinstance(value, Mapping) and "error" not in value:
        inner = next((value[name] for name in _KEYS if name in value), None)
        found = _sections(value) if inner is None else _plain(inner)
    else:
        found = _plain(value)
    return words if found is None else found


def _sections(value: Mapping[str, Any]) -> str | None:
    """An object whose keys are headings."""
    parts = [(str(name), _plain(each)) for name, each in value.items()]
    return (
        None
        if any(words is None for _, words in parts)
        else "\n".join(f"{name}:\n{words}" for name, words in parts)
    )


def _plain(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return "\n".join(f"- {each}" for each in value)
    return _sections(value) if isinstance(value, Mapping) and value else None
