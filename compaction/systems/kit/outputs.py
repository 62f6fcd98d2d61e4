"""Cut a tool's output to its beginning, its end or both, with a marker that says what is missing.

For example, `keep: middle_out` with a limit of 10,000 characters keeps the first 4,950 and the last
4,950; 100 characters are reserved for the marker between them.
"""

import re
from dataclasses import asdict, dataclass
from functools import cache
from string import Formatter

from compaction.core.counter import CHARS_PER_TOKEN
from compaction.core.policy import Policy
from compaction.systems.kit.settings import KeptEnd, OutputKnobs, SizeUnit

# Reserved for a marker in the middle: half the limit less 50 on each side (BaseAgent,
# middle_out_truncate).
MARKER_CHARS = 100
_NUMBER_CHARS = 40
_NUMBER = rf"[0-9,._ ]{{1,{_NUMBER_CHARS}}}"
_INNER_MARKER_MODES = ("middle_out", "quarters")
# The widest character, four bytes. If a text cannot take even this between its ends without being
# cut there again, it was cut there before.
_FILLERS = ("\U0010ffff", "\U0010ffff\n")
_BATCH_CHARS = 1 << 20  # encoded at a time, so that a huge text is not copied as a whole


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cut:
    limit: int
    unit: SizeUnit
    lines: int | None
    keep: KeptEnd
    marker: str


@dataclass(frozen=True, slots=True)
class TruncatedText:
    """What is stored of an output. `original_chars` is its full length if it was cut, else None."""

    content: str
    original_chars: int | None = None


def truncate_output(text: str, policy: Policy) -> TruncatedText:
    """Return what the policy keeps of an output, in whole characters. Never raises.

    Cutting a text again changes nothing. `{kept}`, `{total}` and `{omitted}` in the marker are in
    the policy's unit, in which a token is four characters. (FEAT-011, Tool Result Truncation Rules;
    NeuroLink, Tool Output Limits; BaseAgent, middle_out_truncate)
    """
    knobs = _Cut(limit=policy.tool_result.limit, **asdict(policy.get(OutputKnobs)))
    if _fits(text, knobs):
        return TruncatedText(text)
    earlier_cut = _find_earlier_cut(text, knobs)
    if earlier_cut:
        return earlier_cut
    head, tail = _cut_ends(text, knobs)
    kept_size = _count_units((head, tail), knobs.unit)
    total_size = _count_units((text,), knobs.unit)
    marker = knobs.marker.format(kept=kept_size, total=total_size, omitted=total_size - kept_size)
    content = head + marker + tail if knobs.keep in _INNER_MARKER_MODES else head + tail + marker
    return TruncatedText(content, len(text))


def _compute_limits(knobs: _Cut) -> tuple[int, int]:
    """Return how much of the head and of the tail is kept, in characters or bytes."""
    limit = knobs.limit * (CHARS_PER_TOKEN if knobs.unit == "tokens" else 1)
    space = max(0, limit - MARKER_CHARS)
    return {
        "head": (limit, 0),
        "tail": (0, limit),
        "middle_out": (space // 2, space // 2),
        "quarters": (space // 4, space - space // 4),
    }[knobs.keep]


def _compute_line_limits(knobs: _Cut) -> tuple[int, int]:
    """Return how many lines of the head and of the tail are kept."""
    lines = knobs.lines or 0
    return {
        "head": (lines, 0),
        "tail": (0, lines),
        "middle_out": (lines - lines // 2, lines // 2),
        "quarters": (lines // 4, lines - lines // 4),
    }[knobs.keep]


def _fits(text: str, knobs: _Cut) -> bool:
    limit = knobs.limit * (CHARS_PER_TOKEN if knobs.unit == "tokens" else 1)
    if len(text) > limit or (
        knobs.unit == "bytes" and len(text) * 4 > limit and _measure_size(text, "bytes") > limit
    ):
        return False
    return knobs.lines is None or _find_lines_end(text, knobs.lines) == len(text)


def _cut_ends(text: str, knobs: _Cut) -> tuple[str, str]:
    """Return the head and the tail that are kept; they never overlap."""
    head_limit, tail_limit = _compute_limits(knobs)
    head = _take_start(text, head_limit, knobs.unit)
    tail = _take_end(text, tail_limit, knobs.unit)
    # Lines are counted in what the limit leaves, so that a huge text is not searched as a whole.
    if knobs.lines is not None:
        head_lines, tail_lines = _compute_line_limits(knobs)
        head = head[: _find_lines_end(head, head_lines)]
        tail = tail[_find_lines_start(tail, tail_lines) :]
    overlap = max(0, len(head) + len(tail) - len(text))
    return head, tail[overlap:]


def _take_start(text: str, limit: int, unit: str) -> str:
    start = text[:limit]
    if unit != "bytes" or start.isascii():
        return start
    data = start.encode("utf-8", "surrogatepass")
    if len(data) > limit:
        # A byte 10xxxxxx continues a character: go back to where that character begins.
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
    """Return where the first `count` lines end. A newline at the very end begins no other line."""
    position = 0
    for _ in range(count):
        position = text.find("\n", position) + 1
        if not position:
            return len(text)
    return position


def _find_lines_start(text: str, count: int) -> int:
    """Return where the last `count` lines begin."""
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


def _count_units(texts: tuple[str, ...], unit: str) -> int:
    """Return the size of texts together in the policy's unit."""
    size = sum(_measure_size(text, unit) for text in texts)
    return size // CHARS_PER_TOKEN if unit == "tokens" else size


def _find_earlier_cut(text: str, knobs: _Cut) -> TruncatedText | None:
    """Return the text as it is if this very cut made it, else None.

    Then the marker is in its place, and the ends are as long as a cut leaves them.
    """
    head_limit, tail_limit = _compute_limits(knobs)
    max_marker_chars = len(knobs.marker) + 3 * _NUMBER_CHARS
    if not knobs.marker or len(text) > head_limit + tail_limit + max_marker_chars:
        return None
    is_inner = knobs.keep in _INNER_MARKER_MODES
    search_start = 0 if is_inner else max(0, len(text) - max_marker_chars)
    for match in _build_pattern(knobs.marker).finditer(text, search_start):
        head = text[: match.start()]
        tail = text[match.end() :]
        if not is_inner and tail:
            continue
        if knobs.keep == "tail":
            # The marker stands at the end, after the part that is kept.
            head = ""
            tail = text[: match.start()]
        numbers = {name: _parse_number(digits) for name, digits in match.groupdict().items()}
        kept_size = _count_units((head, tail), knobs.unit)
        if numbers.get("kept", kept_size) != kept_size:
            continue
        if any(_cut_ends(head + filler + tail, knobs) == (head, tail) for filler in _FILLERS):
            return TruncatedText(text, numbers.get("total") if knobs.unit == "chars" else None)
    return None


def _parse_number(digits: str) -> int:
    return int("".join(filter(str.isdigit, digits)) or 0)


@cache
def _build_pattern(marker: str) -> re.Pattern[str]:
    """Build the pattern of a marker with any numbers in it, each in a group of its name."""
    pattern = ""
    group_names: set[str] = set()
    for literal, field_name, _, _ in Formatter().parse(marker):
        pattern += re.escape(literal)
        if field_name is None:
            continue
        name = re.sub(r"[^a-z].*", "", field_name)
        pattern += f"(?P={name})" if name in group_names else f"(?P<{name}>{_NUMBER})"
        group_names.add(name)
    return re.compile(pattern)
