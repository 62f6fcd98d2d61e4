"""Read tool calls that a model writes as its text.

Small models often write the JSON of a call without the marks around it by which their server would
know it. A provider's option `written_calls` says that its models do. A text counts as calls if it
is nothing else, and each of them names a tool of the request. With words around it, a call must
stand in a block of code of its own; then the text stays, and the call follows it.
"""

import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

from chatcore.providers.answer_reader import build_call_id
from chatcore.providers.base import StreamEnd, StreamPart, TextDelta, Tool, ToolCall
from chatcore.providers.errors import ProviderError

# What may stand before, between and after the calls.
_MARKS = re.compile(r"\s*(?:```(?:json)?|</?(?:tool_call|tools)>)?\s*")
_BLOCK = re.compile(r"^```(?P<language>.*)\n(?P<content>(?:(?!```).*\n)*+)```.*$", re.MULTILINE)
# How such a text begins, without its white space.
_BEGINNINGS = tuple(
    f'{mark}{{"{key}":'
    for mark in ("", "```", "```json", "<tool_call>", "<tools>")
    for key in ("name", "arguments", "parameters")
)
_DECODER = json.JSONDecoder()


async def read_written_calls(
    parts: AsyncGenerator[StreamPart], tools: Sequence[Tool]
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of an answer, with calls in the place of a text that is nothing but calls.

    A text that may be one is held back until it cannot be any more, or the answer ends or fails.
    """
    reader = _CallReader(tools)
    try:
        async with aclosing(parts):
            async for part in parts:
                for read_part in reader.read_part(part):
                    yield read_part
    except ProviderError:
        for held_part in reader.release_text():
            yield held_part
        raise


class _CallReader:
    """Finds the calls in the parts of one answer."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._text = ""
        self._is_held = True  # nothing of the text was passed on

    def read_part(self, part: StreamPart) -> Iterator[StreamPart]:
        """Yield what can be passed on by now."""
        if isinstance(part, TextDelta):
            self._text += part.text
            if not self._is_held:
                yield part
            elif not _may_be_call(self._text):
                yield from self.release_text()
        elif isinstance(part, StreamEnd):
            yield from self._end(part)
        else:
            yield part

    def release_text(self) -> Iterator[TextDelta]:
        """Yield the text that was held back."""
        if self._is_held and self._text:
            yield TextDelta(self._text)
        self._is_held = False

    def _end(self, end: StreamEnd) -> Iterator[StreamPart]:
        is_whole = end.reason == "stop"
        calls = parse_calls(self._text, self._tools) if is_whole and self._is_held else ()
        if not calls:
            yield from self.release_text()
            calls = _find_calls_in_blocks(self._text, self._tools) if is_whole else ()
        yield replace(end, reason="tool_calls", tool_calls=calls) if calls else end


def parse_calls(text: str, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """Return the calls that a text consists of; none if it has anything else in it."""
    names = {tool.name for tool in tools}
    calls = []
    position = _skip_marks(text, 0)
    while position < len(text):
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return ()
        call = _build_call(value, names)
        if call is None:
            return ()
        calls.append(call)
        position = _skip_marks(text, position)
    return tuple(calls)


def _find_calls_in_blocks(text: str, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """Return the calls of all blocks of code that are nothing but calls."""
    return tuple(call for block in _list_blocks(text) for call in parse_calls(block, tools))


def _list_blocks(text: str) -> Iterator[str]:
    """Yield what stands in each closed block of code without a language, or of JSON."""
    for match in _BLOCK.finditer(text):
        if match["language"].strip() in ("", "json"):
            yield match["content"]


def _may_be_call(text: str) -> bool:
    start = "".join(text.split())
    return any(
        start.startswith(beginning) or beginning.startswith(start) for beginning in _BEGINNINGS
    )


def _skip_marks(text: str, position: int) -> int:
    """Return the place behind the marks at a place of the text."""
    while match := _MARKS.match(text, position):
        if match.end() == position:
            break
        position = match.end()
    return position


def _build_call(value: object, names: set[str]) -> ToolCall | None:
    if not isinstance(value, dict) or not value.keys() <= {"name", "arguments", "parameters"}:
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if value.get("name") not in names or not isinstance(arguments, dict):
        return None
    return ToolCall(
        id=build_call_id(),
        name=value["name"],
        arguments=json.dumps(arguments, ensure_ascii=False),
    )
