"""What a summarizer is told of the messages: words, and the tool calls and results a policy lets in; never what a model only thought."""

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
    """Each message as lines of text, in order; one that has nothing left to tell is left out. `numbered`: by its seq."""
    tool_names: dict[str, str] = {}
    lines = []
    for entry in entries:
        tool_names |= {call.id: call.name for call in entry.calls}
        source_entry = _select_source(entry, tool_names, knobs)
        if source_entry is not None:
            lines.append(
                f"{source_entry.seq}. {render_entry(source_entry)}"
                if with_numbers
                else render_entry(source_entry)
            )
    return lines


def _select_source(
    entry: TranscriptEntry, tool_names: dict[str, str], knobs: SummaryKnobs
) -> TranscriptEntry | None:
    """The message as the policy wants it told; None when nothing is left of it."""
    content = (
        entry.original
        if knobs.source == "originals" and entry.original is not None
        else entry.content
    )
    if entry.role == "tool":
        name = entry.tool_name or tool_names.get(entry.call_id, "")
        return (
            replace(entry, content=content, tool_name=name) if includes_tool(name, knobs) else None
        )
    if entry.role == "assistant":
        content = _LEADING_THOUGHT.sub("", content)
    if entry.images:
        content = f"{content}\n[images: {entry.images}]".lstrip()
    calls = tuple(call for call in entry.calls if includes_tool(call.name, knobs))
    return replace(entry, content=content, calls=calls) if content.strip() or calls else None


def includes_tool(name: str, knobs: SummaryKnobs) -> bool:
    """Whether calls and results of a tool are told."""
    return (
        knobs.tools == "all"
        or name in knobs.tool_names
        or (bool(knobs.tool_prefixes) and name.startswith(knobs.tool_prefixes))
    )


def render_entry(entry: TranscriptEntry) -> str:
    """A message as lines of text; its tool calls and results are text too."""
    if entry.role == "tool":
        return f"[result of {entry.tool_name or 'a tool'}{', an error' if entry.is_error else ''}]\n{entry.content}"
    return "\n".join(_render_parts(entry))


def _render_parts(entry: TranscriptEntry) -> Iterator[str]:
    if entry.content or not entry.calls:
        yield f"[{entry.role}]\n{entry.content}"
    for call in entry.calls:
        yield f"[{entry.role} calls {call.name}]\n{call.arguments}"
