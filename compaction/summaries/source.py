"""What a summarizer is told of the messages: words, and the tool calls and results a policy lets in; never what a model only thought."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from compaction.core.groups.summaries import Summary
from compaction.core.transcript import Entry

_THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.IGNORECASE | re.DOTALL)


def told(entries: Iterable[Entry], wanted: Summary, *, numbered: bool) -> list[str]:
    """Each message as lines of text, in order; one that has nothing left to tell is left out. `numbered`: by its seq."""
    names: dict[str, str] = {}
    lines = []
    for entry in entries:
        names |= {call.id: call.name for call in entry.calls}
        left = _left(entry, names, wanted)
        if left is not None:
            lines.append(f"{left.seq}. {rendered(left)}" if numbered else rendered(left))
    return lines


def _left(entry: Entry, names: dict[str, str], wanted: Summary) -> Entry | None:
    """The message as the policy wants it told; None when nothing is left of it."""
    shown = (
        entry.original
        if wanted.source == "originals" and entry.original is not None
        else entry.content
    )
    if entry.role == "tool":
        name = entry.tool_name or names.get(entry.call_id, "")
        return replace(entry, content=shown, tool_name=name) if listed(name, wanted) else None
    if entry.role == "assistant":
        shown = _THOUGHT.sub("", shown)
    if entry.images:
        shown = f"{shown}\n[images: {entry.images}]".lstrip()
    calls = tuple(call for call in entry.calls if listed(call.name, wanted))
    return replace(entry, content=shown, calls=calls) if shown.strip() or calls else None


def listed(name: str, wanted: Summary) -> bool:
    """Whether calls and results of a tool are told."""
    return (
        wanted.tools == "all"
        or name in wanted.tool_names
        or (bool(wanted.tool_prefixes) and name.startswith(wanted.tool_prefixes))
    )


def rendered(entry: Entry) -> str:
    """A message as lines of text; its tool calls and results are text too."""
    if entry.role == "tool":
        return f"[result of {entry.tool_name or 'a tool'}{', an error' if entry.is_error else ''}]\n{entry.content}"
    return "\n".join(_spoken(entry))


def _spoken(entry: Entry) -> Iterator[str]:
    if entry.content or not entry.calls:
        yield f"[{entry.role}]\n{entry.content}"
    for call in entry.calls:
        yield f"[{entry.role} calls {call.name}]\n{call.arguments}"
