"""Render messages as the text that is summarized.

Words are included, and the tool calls and results that the policy selects. What a model only
thought is left out.
"""

import re
from collections.abc import Iterable, Mapping

from compaction.core.knobs import SummaryKnobs
from compaction.core.outcome import NumberedLine
from compaction.core.transcript import TranscriptEntry
from compaction.summaries import headers

_LEADING_THOUGHT = re.compile(
    r"\A\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.IGNORECASE | re.DOTALL
)


def render_lines(
    entries: Iterable[TranscriptEntry], knobs: SummaryKnobs, *, with_numbers: bool
) -> list[str]:
    """Return each message as one text, in order. Messages without content are left out.

    With `with_numbers` each text begins with the number (seq) of its message.
    """
    numbered_lines = render_numbered_lines(entries, knobs, with_numbers=with_numbers)
    return [line.text for line in numbered_lines]


def render_numbered_lines(
    entries: Iterable[TranscriptEntry], knobs: SummaryKnobs, *, with_numbers: bool
) -> list[NumberedLine]:
    """Return what `render_lines` does, each text with the number of its message beside it."""
    tool_names: dict[str, str] = {}
    lines = []
    for entry in entries:
        for call in entry.calls:
            tool_names[call.id] = call.name
        text = _render_entry(entry, tool_names, knobs)
        if text is not None:
            text = f"{entry.seq}. {text}" if with_numbers else text
            lines.append(NumberedLine(entry.seq, text))
    return lines


def includes_tool(name: str, knobs: SummaryKnobs) -> bool:
    """Return True if the policy includes the calls and results of a tool."""
    return (
        knobs.tools == "all"
        or name in knobs.tool_names
        or (bool(knobs.tool_prefixes) and name.startswith(knobs.tool_prefixes))
    )


def _render_entry(
    entry: TranscriptEntry, tool_names: Mapping[str, str], knobs: SummaryKnobs
) -> str | None:
    """Return what the policy includes of a message as text, its tool calls too; None for nothing.

    `tool_names` has the name of the tool for the id of each call so far.
    """
    content = entry.content
    if knobs.source == "originals" and entry.original is not None:
        content = entry.original
    if entry.role == "tool":
        name = entry.tool_name or tool_names.get(entry.call_id, "")
        if not includes_tool(name, knobs):
            return None
        return headers.render_result(name, content, is_error=entry.is_error)
    if entry.role == "assistant" and (thought := _LEADING_THOUGHT.match(content)):
        content = content[thought.end() :]
    calls = [call for call in entry.calls if includes_tool(call.name, knobs)] if entry.calls else ()
    if not calls and not entry.images and (not content or content.isspace()):
        return None
    parts = []
    if content or entry.images:
        parts.append(headers.render_words(entry.role, content, images=entry.images))
    parts += [headers.render_call(entry.role, call.name, call.arguments) for call in calls]
    return "\n".join(parts)
