"""Render messages as the text that is summarized.

Words are included, and the tool calls and results that the policy selects. What a model only
thought is left out.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from compaction.core.groups.summaries import SummaryKnobs
from compaction.core.transcript import TranscriptEntry

_LEADING_THOUGHT = re.compile(
    r"\A\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.IGNORECASE | re.DOTALL
)


def render_lines(
    entries: Iterable[TranscriptEntry], knobs: SummaryKnobs, *, with_numbers: bool
) -> list[str]:
    """Return each message as one text, in order. Messages without content are left out.

    With `with_numbers` each text begins with the number (seq) of its message.
    """
    tool_names: dict[str, str] = {}
    lines = []
    for entry in entries:
        tool_names |= {call.id: call.name for call in entry.calls}
        source_entry = _select_source(entry, tool_names, knobs)
        if source_entry is None:
            continue
        text = render_entry(source_entry)
        lines.append(f"{source_entry.seq}. {text}" if with_numbers else text)
    return lines


def _select_source(
    entry: TranscriptEntry, tool_names: dict[str, str], knobs: SummaryKnobs
) -> TranscriptEntry | None:
    """Return the message with what the policy includes of it; None for nothing."""
    content = entry.content
    if knobs.source == "originals" and entry.original is not None:
        content = entry.original
    if entry.role == "tool":
        name = entry.tool_name or tool_names.get(entry.call_id, "")
        if not includes_tool(name, knobs):
            return None
        return replace(entry, content=content, tool_name=name)
    if entry.role == "assistant":
        content = _LEADING_THOUGHT.sub("", content)
    if entry.images:
        content = f"{content}\n[images: {entry.images}]".lstrip()
    calls = tuple(call for call in entry.calls if includes_tool(call.name, knobs))
    if not content.strip() and not calls:
        return None
    return replace(entry, content=content, calls=calls)


def includes_tool(name: str, knobs: SummaryKnobs) -> bool:
    """Return True if the policy includes the calls and results of a tool."""
    return (
        knobs.tools == "all"
        or name in knobs.tool_names
        or (bool(knobs.tool_prefixes) and name.startswith(knobs.tool_prefixes))
    )


def render_entry(entry: TranscriptEntry) -> str:
    """Return a message as text, its tool calls included."""
    if entry.role == "tool":
        error_mark = ", an error" if entry.is_error else ""
        return f"[result of {entry.tool_name or 'a tool'}{error_mark}]\n{entry.content}"
    return "\n".join(_render_parts(entry))


def _render_parts(entry: TranscriptEntry) -> Iterator[str]:
    if entry.content or not entry.calls:
        yield f"[{entry.role}]\n{entry.content}"
    for call in entry.calls:
        yield f"[{entry.role} calls {call.name}]\n{call.arguments}"
