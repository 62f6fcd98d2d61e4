"""Remove what models put around a summary: thoughts, fences, JSON, tags, an announcement."""

import json
import re
from collections.abc import Mapping

from compaction.summaries.prompt import TAG_NAMES

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_END_OF_THOUGHT = re.compile(r"\A.*</(think|thinking|reasoning)>", re.IGNORECASE | re.DOTALL)
_PROMPT_TAG = re.compile(rf"</?\s*({'|'.join(TAG_NAMES)}|conversation_summary)\s*>", re.IGNORECASE)
_SPECIAL_TOKEN = re.compile(r"<\|[\w ]{1,40}\|>|</?s>|\[/?INST\]")
_FENCE = re.compile(r"\A(`{3,}+|~{3,}+)[^\n`]*\n(.*?)\n?\1\Z", re.DOTALL)
_WRAPPER_TAG = re.compile(
    r"\A<(summary|output|answer|result)>(.*)</\1>\Z", re.IGNORECASE | re.DOTALL
)
_ANNOUNCEMENT = re.compile(
    r"\A(?:(?:sure|certainly|of course|okay|ok)\b[^\n]{0,40}?[,.!:]\s*)?"
    r"(?:here(?: is|['’]s)|below is)\b[^\n]{0,60}:\s*\n",
    re.IGNORECASE,
)
_SUMMARY_KEYS = ("summary", "text", "content", "result", "output", "answer")
MAX_LAYERS = 4


def unwrap_summary(text: str) -> str:
    """Return the summary without anything around it."""
    summary = _PROMPT_TAG.sub("", _SPECIAL_TOKEN.sub("", strip_thoughts(text))).strip()
    for _ in range(MAX_LAYERS):
        inner = _strip_layer(summary).strip()
        if inner == summary:
            break
        summary = inner
    return summary


def strip_thoughts(text: str) -> str:
    """Return the text without the model's reasoning.

    A block may be left open at the end. Its beginning may be missing too, because some models'
    chat templates put it into the prompt.
    """
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
        summary_value = next((value[name] for name in _SUMMARY_KEYS if name in value), None)
        if summary_value is None:
            content = _format_sections(value)
        else:
            content = _format_value(summary_value)
    else:
        content = _format_value(value)
    return text if content is None else content


def _format_sections(value: Mapping[str, object]) -> str | None:
    """Return an object whose keys are headings as text; None if a value of it has no text."""
    sections: list[str] = []
    for name, content in value.items():
        section_text = _format_value(content)
        if section_text is None:
            return None
        sections.append(f"{name}:\n{section_text}")
    return "\n".join(sections)


def _format_value(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "\n".join(f"- {item}" for item in value)
    if isinstance(value, Mapping) and value:
        return _format_sections(value)
    return None
