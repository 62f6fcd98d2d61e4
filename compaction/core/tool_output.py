"""The cut of a tool's output: so much of its head, its tail or both, around a marker that says what is missing."""

import re
from dataclasses import dataclass
from functools import cache
from string import Formatter

from compaction.core.groups.conduct import ToolResult

CHARS_PER_TOKEN = 4
MARKER_ROOM = 100  # characters that cutting in the middle leaves for the marker (BaseAgent: half the limit less 50 on each side)
_NUMBER_CHARS = 40
_NUMBER = rf"[0-9,._ ]{{1,{_NUMBER_CHARS}}}"
_BETWEEN = ("middle_out", "quarters")
_OMITTED = (
    "\U0010ffff",
    "\U0010ffff\n",
)  # the widest character: where it has no room, no more was left out than that
_BATCH = 1 << 20  # characters encoded at a time


@dataclass(frozen=True, slots=True)
class Cut:
    """What is stored of an output, and how many characters it had when that is not all of it."""

    content: str
    original_chars: int | None = None


def cut(text: str, knobs: ToolResult) -> Cut:
    """Keep of an output what the policy says, by whole characters. Cutting twice changes nothing; it never raises.

    FEAT-011, Tool Result Truncation Rules; NeuroLink, Tool Output Limits; BaseAgent, middle_out_truncate. `{kept}`, `{total}` and
    `{omitted}` in the marker count in the policy's unit; a token is four characters.
    """
    if _fits(text, knobs):
        return Cut(text)
    if before := _cut_before(text, knobs):
        return before
    head, tail = _ends(text, knobs)
    kept, total = _size(head, knobs.unit) + _size(tail, knobs.unit), _size(text, knobs.unit)
    kept, total = _told(kept, knobs.unit), _told(total, knobs.unit)
    marker = knobs.marker.format(kept=kept, total=total, omitted=total - kept)
    between = head + marker + tail if knobs.keep in _BETWEEN else head + tail + marker
    return Cut(between, len(text))


def preview(text: str, limit: int = 2_000) -> str:
    """The first characters between how many there are and how many are left out. Wolffish, Task File Summaries."""
    omitted = len(text) - limit
    if omitted <= 0:
        return f"({len(text):,} chars) {text}"
    return f"({len(text):,} chars) {text[:limit]}... [{omitted:,} chars omitted]"


def _limits(knobs: ToolResult) -> tuple[int, int]:
    """How much of the head and of the tail is kept, in characters or bytes."""
    limit = knobs.limit * (CHARS_PER_TOKEN if knobs.unit == "tokens" else 1)
    room = max(0, limit - MARKER_ROOM)
    return {
        "head": (limit, 0),
        "tail": (0, limit),
        "middle_out": (room // 2, room // 2),
        "quarters": (room // 4, room - room // 4),
    }[knobs.keep]


def _lines(knobs: ToolResult) -> tuple[int, int]:
    """The same in lines, where they are limited."""
    lines = knobs.lines or 0
    return {
        "head": (lines, 0),
        "tail": (0, lines),
        "middle_out": (lines - lines // 2, lines // 2),
        "quarters": (lines // 4, lines - lines // 4),
    }[knobs.keep]


def _fits(text: str, knobs: ToolResult) -> bool:
    limit = knobs.limit * (CHARS_PER_TOKEN if knobs.unit == "tokens" else 1)
    if len(text) > limit or (
        knobs.unit == "bytes" and len(text) * 4 > limit and _size(text, "bytes") > limit
    ):
        return False
    return knobs.lines is None or _after_lines(text, knobs.lines) == len(text)


def _ends(text: str, knobs: ToolResult) -> tuple[str, str]:
    """The head and the tail that are kept; they never overlap."""
    first, last = _limits(knobs)
    head, tail = _start(text, first, knobs.unit), _end(text, last, knobs.unit)
    if knobs.lines is not None:
        above, below = _lines(knobs)
        head, tail = head[: _after_lines(head, above)], tail[_before_lines(tail, below) :]
    return head, tail[max(0, len(head) + len(tail) - len(text)) :]


def _start(text: str, limit: int, unit: str) -> str:
    start = text[:limit]
    if unit != "bytes" or start.isascii():
        return start
    data = start.encode("utf-8", "surrogatepass")
    if len(data) > limit:
        while data[limit] & 0xC0 == 0x80:
            limit -= 1
    return data[:limit].decode("utf-8", "surrogatepass")


def _end(text: str, limit: int, unit: str) -> str:
    end = text[-limit:] if limit else ""
    if unit != "bytes" or end.isascii():
        return end
    data = end.encode("utf-8", "surrogatepass")
    first = max(0, len(data) - limit)
    while first < len(data) and data[first] & 0xC0 == 0x80:
        first += 1
    return data[first:].decode("utf-8", "surrogatepass")


def _after_lines(text: str, count: int) -> int:
    """Where the first `count` lines end, all the text if it has no more. A newline at the very end begins no other line."""
    place = 0
    for _ in range(count):
        place = text.find("\n", place) + 1
        if not place:
            return len(text)
    return place


def _before_lines(text: str, count: int) -> int:
    """Where the last `count` lines begin."""
    place = len(text) - 1 if text.endswith("\n") else len(text)
    for _ in range(count):
        place = text.rfind("\n", 0, place)
        if place < 0:
            return 0
    return place + 1 if count else len(text)


def _size(text: str, unit: str) -> int:
    if unit != "bytes" or text.isascii():
        return len(text)
    return sum(
        len(text[start : start + _BATCH].encode("utf-8", "surrogatepass"))
        for start in range(0, len(text), _BATCH)
    )


def _told(size: int, unit: str) -> int:
    return size // CHARS_PER_TOKEN if unit == "tokens" else size


def _cut_before(text: str, knobs: ToolResult) -> Cut | None:
    """The text as it is, when this very cut made it: the marker is in its place, between ends as long as a cut leaves them."""
    first, last = _limits(knobs)
    longest = len(knobs.marker) + 3 * _NUMBER_CHARS
    if not knobs.marker or len(text) > first + last + longest:
        return None
    between = knobs.keep in _BETWEEN
    for found in _pattern(knobs.marker).finditer(
        text, 0 if between else max(0, len(text) - longest)
    ):
        head, tail = text[: found.start()], text[found.end() :]
        if not between and tail:
            continue
        if knobs.keep == "tail":
            head, tail = "", head
        numbers = {name: _number(digits) for name, digits in found.groupdict().items()}
        kept = _told(_size(head, knobs.unit) + _size(tail, knobs.unit), knobs.unit)
        if numbers.get("kept", kept) == kept and any(
            _ends(head + other + tail, knobs) == (head, tail) for other in _OMITTED
        ):
            return Cut(text, numbers.get("total") if knobs.unit == "chars" else None)
    return None


def _number(digits: str) -> int:
    return int("".join(filter(str.isdigit, digits)) or 0)


@cache
def _pattern(marker: str) -> re.Pattern[str]:
    """Finds the marker with any numbers in it."""
    pattern, seen = "", set()
    for words, name, _, _ in Formatter().parse(marker):
        plain = re.match(r"[a-z]*", name or "")[0]  # type: ignore[index]  # it matches always
        pattern += re.escape(words)
        if name is not None:
            pattern += f"(?P={plain})" if plain in seen else f"(?P<{plain}>{_NUMBER})"
            seen.add(plain)
    return re.compile(pattern)
