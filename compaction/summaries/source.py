"""Render messages as the text that is summarized, each under a header that says whose words follow.

Words are included, and the tool calls and results that the policy selects. What a model only
thought is left out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from types import MappingProxyType

from chatcore.providers.quirks.thought_tags import remove_thoughts
from compaction.core.outcome import NumberedLine
from compaction.core.systems import Traits
from compaction.core.transcript import TranscriptEntry
from textkit.calendar import describe_weekday
from textkit.credentials import PLACEHOLDER, list_credentials, remove_credentials

_BLANK = r"[\s\u200b-\u200f\u2060\ufeff]"
_FALSE_HEADER = re.compile(
    rf"[\[［【〔⟦](?={_BLANK}*+(?:"
    rf"(?:user|assistant|system|developer|tool|human|ai){_BLANK}*+(?:[\]］】〕⟧]|calls\b)"
    rf"|(?:results?|summary|summaries){_BLANK}++of\b"
    rf"|(?:images|day){_BLANK}*+:))",
    re.IGNORECASE,
)
_NO_NAME = re.compile(r"[^\w.:/-]+")
MAX_NAME_CHARS = 100

# The author of a message, a tool's output or a summary could otherwise put words into the mouth of
# another: the summary would then repeat them as the user's wish, for as long as the session lasts.
# A header as the functions below write it, perhaps behind the number of its message.
HEADER = re.compile(
    r"^(?:\d+\. )?\[(?P<mark>user|assistant|system|result of [^\]\n]{1,200}|"
    r"(?:user|assistant) calls [^\]\n]{1,200}|summary of [^\]\n]{1,60})\]$",
    re.MULTILINE,
)

# The day of the messages that follow it.
DAY_HEADER = re.compile(r"^\[day: [^\],\n]{1,20}, ([^\]\n]{1,40})\]\n", re.MULTILINE)


def escape_headers(text: str) -> str:
    """Return a text in which nothing can be mistaken for a header.

    Not only lines are changed: a long text is divided anywhere, and the rest begins a line.
    """
    # Most texts have no bracket, and the search for one kind takes a fortieth of that for five.
    if "[" not in text and text.isascii():
        return text
    return _FALSE_HEADER.sub("‹", text)


def render_words(role: str, text: str, *, images: int = 0) -> str:
    """Return a message's text and number of images, under the header that names its role."""
    words = escape_headers(text)
    if images:
        words = f"{words}\n[images: {images}]".lstrip()
    return f"[{role}]\n{words}"


def render_call(role: str, tool: str, arguments: str) -> str:
    """Return a tool call under its header, without credentials."""
    return f"[{role} calls {_clean_name(tool)}]\n{escape_headers(remove_credentials(arguments))}"


def render_result(tool: str, text: str, *, is_error: bool) -> str:
    """Return what a tool returned under the header that names it, without credentials."""
    text = remove_credentials(text)
    error_mark = ", an error" if is_error else ""
    return f"[result of {_clean_name(tool) or 'a tool'}{error_mark}]\n{escape_headers(text)}"


def render_earlier_summary(summary: str) -> str:
    """Return the summary of what came before the transcript under its header."""
    return f"[summary of what came before]\n{escape_headers(summary)}"


def render_part_summary(number: int, summary: str) -> str:
    """Return the summary of one part of a long transcript under its header."""
    return f"[summary of part {number}]\n{escape_headers(summary)}"


def _clean_name(tool: str) -> str:
    """Return the name as one word. An import and a model may write anything in its place."""
    return _NO_NAME.sub("_", tool)[:MAX_NAME_CHARS]


def join_days(lines: Sequence[NumberedLine]) -> list[str]:
    """Return the texts of messages, the first one of each day under a header with the day."""
    texts: list[str] = []
    day: date | None = None
    for line in lines:
        is_new_day = line.day is not None and line.day != day
        day = line.day or day
        header = f"[day: {describe_weekday(line.day)}]\n" if line.day and is_new_day else ""
        texts.append(header + line.text)
    return texts


def find_last_day(text: str) -> str:
    """Return the last header of a day in a text; empty if there is none."""
    headers = [match[0] for match in DAY_HEADER.finditer(text)]
    return headers[-1] if headers else ""


def render_lines(
    entries: Iterable[TranscriptEntry], traits: Traits, *, with_numbers: bool
) -> list[str]:
    """Return each message as one text, in order. Messages without content are left out.

    With `with_numbers` each text begins with the number (seq) of its message.
    """
    numbered_lines = render_numbered_lines(entries, traits, with_numbers=with_numbers)
    return [line.text for line in numbered_lines]


def render_numbered_lines(
    entries: Iterable[TranscriptEntry],
    traits: Traits,
    *,
    with_numbers: bool,
    days: Mapping[int, date] = MappingProxyType({}),
) -> list[NumberedLine]:
    """Return what `render_lines` does, each text with the number and the day of its message.

    `days` has the days of the messages by their numbers.
    """
    tool_names: dict[str, str] = {}
    credentials: set[str] = set()
    lines = []
    for entry in entries:
        for call in entry.calls:
            tool_names[call.id] = call.name
            credentials |= list_credentials(call.arguments)
        if entry.role == "tool":
            credentials |= list_credentials(entry.original or entry.content)
        text = _render_entry(entry, tool_names, traits)
        if text is not None and entry.role == "assistant":
            # The model repeats what a tool returned, in words of its own.
            for value in credentials:
                text = text.replace(value, PLACEHOLDER)
        if text is not None:
            text = f"{entry.seq}. {text}" if with_numbers else text
            lines.append(NumberedLine(entry.seq, text, days.get(entry.seq)))
    return lines


def _render_entry(
    entry: TranscriptEntry, tool_names: Mapping[str, str], traits: Traits
) -> str | None:
    """Return what the policy includes of a message as text, its tool calls too; None for nothing.

    `tool_names` has the name of the tool for the id of each call so far.
    """
    content = entry.content
    if traits.reads_originals and entry.original is not None:
        content = entry.original
    if entry.role == "tool":
        name = entry.tool_name or tool_names.get(entry.call_id, "")
        if not traits.includes_tool(name):
            return None
        return render_result(name, content, is_error=entry.is_error)
    if entry.role == "assistant":
        content = remove_thoughts(content)
    calls = [call for call in entry.calls if traits.includes_tool(call.name)] if entry.calls else ()
    if not calls and not entry.images and (not content or content.isspace()):
        return None
    if entry.role != "user":
        # The model may repeat what a tool returned. What users write is their decision.
        content = remove_credentials(content)
    parts = []
    if content or entry.images:
        parts.append(render_words(entry.role, content, images=entry.images))
    parts += [render_call(entry.role, call.name, call.arguments) for call in calls]
    return "\n".join(parts)
