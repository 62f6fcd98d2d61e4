"""Takes a summary out of what models put around it: thoughts, fences, JSON, tags, an announcement."""

import json
import re
from collections.abc import Mapping
from typing import Any

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_END_OF_THOUGHT = re.compile(r"\A.*</(think|thinking|reasoning)>", re.IGNORECASE | re.DOTALL)
_PROMPT_TAG = re.compile(
    r"</?\s*(transcript|existing-state|conversation_summary)\s*>", re.IGNORECASE
)
_SPECIAL_TOKEN = re.compile(r"<\|[\w ]{1,40}\|>|</?s>|\[/?INST\]")
_FENCE = re.compile(r"\A(`{3,}|~{3,})[^\n`]*\n(.*?)\n?\1\Z", re.DOTALL)
_WRAPPER_TAG = re.compile(
    r"\A<(summary|output|answer|result)>(.*)</\1>\Z", re.IGNORECASE | re.DOTALL
)
_ANNOUNCEMENT = re.compile(
    r"\A(?:(?:sure|certainly|of course|okay|ok)\b[^\n]{0,40}?[,.!:]\s*)?(?:here(?: is|['’]s)|below is)\b[^\n]{0,60}:\s*\n",
    re.IGNORECASE,
)
_SUMMARY_KEYS = ("summary", "text", "content", "result", "output", "answer")
MAX_LAYERS = 4


def unwrap_summary(text: str) -> str:
    """The summary alone; a text that is wrapped in nothing is given back as it is."""
    summary = _PROMPT_TAG.sub("", _SPECIAL_TOKEN.sub("", strip_thoughts(text))).strip()
    for _ in range(MAX_LAYERS):
        previous, summary = summary, _strip_layer(summary).strip()
        if summary == previous:
            break
    return summary


def strip_thoughts(text: str) -> str:
    """The text without reasoning blocks, closed or not, and without the end of one whose beginning the template swallowed."""
    return _END_OF_THOUGHT.sub("", _THOUGHT.sub("", text)).strip()


def _strip_layer(text: str) -> str:
    if match := _FENCE.match(text):
        return match[2]
    if match := _WRAPPER_TAG.match(text):
        return match[2]
    if text.startswith(("{", "[", '"')):
        return _unwrap_json(text)
    return _ANNOUNCEMENT.sub("", text, count=1)


def _unwrap_json(text: str) -> str:
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, Mapping) and "error" not in value:
        field = next((value[name] for name in _SUMMARY_KEYS if name in value), None)
        content = _format_sections(value) if field is None else _format_value(field)
    else:
        content = _format_value(value)
    return text if content is None else content


def _format_sections(value: Mapping[str, Any]) -> str | None:
    """An object whose keys are headings."""
    parts = [(str(name), _format_value(content)) for name, content in value.items()]
    return (
        None
        if any(section_text is None for _, section_text in parts)
        else "\n".join(f"{name}:\n{section_text}" for name, section_text in parts)
    )


def _format_value(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "\n".join(f"- {item}" for item in value)
    return _format_sections(value) if isinstance(value, Mapping) and value else None
