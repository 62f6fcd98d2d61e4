"""The cut of a tool's output: so much of its head, its tail or both, around a marker that says what is missing."""

import re
from dataclasses import dataclass
from functools import cache
from string import Formatter

from compaction.core.estimate import CHARS_PER_TOKEN
from compaction.core.groups.conduct import ToolResultKnobs

MARKER_CHARS = 100  # characters that cutting in the middle leaves for the marker (BaseAgent: half the limit less 50 on each side)
_NUMBER_CHARS = 40
_NUMBER = rf"[0-9,._ ]{{1,{_NUMBER_CHARS}}}"
_INNER_MARKER_MODES = ("middle_out", "quarters")
_FILLERS = (
    "\U0010ffff",
    "\U0010ffff\n",
)  # the widest character: where it has no room, no more was left out than that
_BATCH_CHARS = 1 << 20  # characters encoded at a time


@dataclass(frozen=True, slots=True)
class TruncatedText:
    """What is stored of an output, and how many characters it had when that is not all of it."""

    content: str
    original_chars: int | None = None


def truncate_output(text: str, knobs: ToolResultKnobs) -> TruncatedText:
    """Keep of an output what the policy says, by whole characters. Cutting twice changes nothing; it never raises.

    FEAT-011, Tool Result Truncation Rules; NeuroLink, Tool Output Limits; BaseAgent, middle_out_truncate. `{kept}`, `{total}` and
    `{omitted}` in the marker count in the policy's unit; a token is four characters.
    """
    if _fits(text, knobs):
        return TruncatedText(text)
    if earlier_cut := _find_earlier_cut(text, knobs):
        return earlier_cut
    head, tail = _cut_ends(text, knobs)
    remaining_size, total_size = (
        _measure_size(head, knobs.unit) + _measure_size(tail, knobs.unit),
        _measure_size(text, knobs.unit),
    )
    remaining_size, total_size = (
        _convert_size(remaining_size, knobs.unit),
        _convert_size(total_size, knobs.unit),
    )
    marker = knobs.marker.format(
        kept=remaining_size, total=total_size, omitted=total_size - remaining_size
    )
    content = head + marker + tail if knobs.keep in _INNER_MARKER_MODES else head + tail + marker
    return TruncatedText(content, len(text))


def preview_text(text: str, limit: int = 2_000) -> str:
    """The first characters between how many there are and how many are left out. Wolffish, Task File Summaries."""
    omitted_chars = len(text) - limit
    if omitted_chars <= 0:
        return f"({len(text):,} chars) {text}"
    return f"({len(text):,} chars) {text[:limit]}... [{omitted_chars:,} chars omitted]"


def _compute_limits(knobs: ToolResultKnobs) -> tuple[int, int]:
    """How much of the head and of the tail is kept, in characters or bytes."""
    limit = knobs.limit * (CHARS_PER_TOKEN if knobs.unit == "tokens" else 1)
    room = max(0, limit - MARKER_CHARS)
    return {
        "head": (limit, 0),
        "tail": (0, limit),
        "middle_out": (room // 2, room // 2),
        "quarters": (room // 4, room - room // 4),
    }[knobs.keep]


def _compute_line_limits(knobs: ToolResultKnobs) -> tuple[int, int]:
    """The same in lines, where they are limited."""
    lines = knobs.lines or 0
    return {
        "head": (lines, 0),
        "tail": (0, lines),
        "middle_out": (lines - lines // 2, lines // 2),
        "quarters": (lines // 4, lines - lines // 4),
    }[knobs.keep]


def _fits(text: str, knobs: ToolResultKnobs) -> bool:
    limit = knobs.limit * (CHARS_PER_TOKEN if knobs.unit == "tokens" else 1)
    if len(text) > limit or (
        knobs.unit == "bytes" and len(text) * 4 > limit and _measure_size(text, "bytes") > limit
    ):
        return False
    return knobs.lines is None or _find_lines_end(text, knobs.lines) == len(text)


def _cut_ends(text: str, knobs: ToolResultKnobs) -> tuple[str, str]:
    """The head and the tail that are kept; they never overlap."""
    head_limit, tail_limit = _compute_limits(knobs)
    head, tail = _take_start(text, head_limit, knobs.unit), _take_end(text, tail_limit, knobs.unit)
    if knobs.lines is not None:
        head_lines, tail_lines = _compute_line_limits(knobs)
        head, tail = (
            head[: _find_lines_end(head, head_lines)],
            tail[_find_lines_start(tail, tail_lines) :],
        )
    return head, tail[max(0, len(head) + len(tail) - len(text)) :]


def _take_start(text: str, limit: int, unit: str) -> str:
    start = text[:limit]
    if unit != "bytes" or start.isascii():
        return start
    data = start.encode("utf-8", "surrogatepass")
    if len(data) > limit:
        while data[limit] & 0xC0 == 0x80:
            limit -= 1
    return data[:limit].decode("utf-8", "surrogatepass")


def _take_end(text: str, limit: int, unit: str) -> str:
    end = text[-limit:] if limit else ""
    if unit != "bytes" or end.isascii():
        return end
    data = end.encode("utf-8", "surrogatepass")
    offset = max(0, len(data) - limit)
    while offset < len(data) and data[offset] & 0xC0 == 0x80:
        offset += 1
    return data[offset:].decode("utf-8", "surrogatepass")


def _find_lines_end(text: str, count: int) -> int:
    """Where the first `count` lines end, all the text if it has no more. A newline at the very end begins no other line."""
    position = 0
    for _ in range(count):
        position = text.find("\n", position) + 1
        if not position:
            return len(text)
    return position


def _find_lines_start(text: str, count: int) -> int:
    """Where the last `count` lines begin."""
    position = len(text) - 1 if text.endswith("\n") else len(text)
    for _ in range(count):
        position = text.rfind("\n", 0, position)
        if position < 0:
            return 0
    return position + 1 if count else len(text)


def _measure_size(text: str, unit: str) -> int:
    if unit != "bytes" or text.isascii():
        return len(text)
    return sum(
        len(text[start : start + _BATCH_CHARS].encode("utf-8", "surrogatepass"))
        for start in range(0, len(text), _BATCH_CHARS)
    )


def _convert_size(size: int, unit: str) -> int:
    return size // CHARS_PER_TOKEN if unit == "tokens" else size


def _find_earlier_cut(text: str, knobs: ToolResultKnobs) -> TruncatedText | None:
    """The text as it is, when this very cut made it: the marker is in its place, between ends as long as a cut leaves them."""
    head_limit, tail_limit = _compute_limits(knobs)
    max_marker_chars = len(knobs.marker) + 3 * _NUMBER_CHARS
    if not knobs.marker or len(text) > head_limit + tail_limit + max_marker_chars:
        return None
    is_inner = knobs.keep in _INNER_MARKER_MODES
    for match in _build_pattern(knobs.marker).finditer(
        text, 0 if is_inner else max(0, len(text) - max_marker_chars)
    ):
        head, tail = text[: match.start()], text[match.end() :]
        if not is_inner and tail:
            continue
        if knobs.keep == "tail":
            head, tail = "", head
        numbers = {name: _parse_number(digits) for name, digits in match.groupdict().items()}
        remaining_size = _convert_size(
            _measure_size(head, knobs.unit) + _measure_size(tail, knobs.unit), knobs.unit
        )
        if numbers.get("kept", remaining_size) == remaining_size and any(
            _cut_ends(head + filler + tail, knobs) == (head, tail) for filler in _FILLERS
        ):
            return TruncatedText(text, numbers.get("total") if knobs.unit == "chars" else None)
    return None


def _parse_number(digits: str) -> int:
    return int("".join(filter(str.isdigit, digits)) or 0)


@cache
def _build_pattern(marker: str) -> re.Pattern[str]:
    """Finds the marker with any numbers in it."""
    pattern, group_names = "", set()
    for literal, name, _, _ in Formatter().parse(marker):
        group_name = re.match(r"[a-z]*", name or "")[0]  # type: ignore[index]  # it matches always
        pattern += re.escape(literal)
        if name is not None:
            pattern += (
                f"(?P={group_name})"
                if group_name in group_names
                else f"(?P<{group_name}>{_NUMBER})"
            )
            group_names.add(group_name)
    return re.compile(pattern)
