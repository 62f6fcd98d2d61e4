"""Divide messages into the spans that are summarized, and find the segments that exist of them."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compaction.core.outcome import NumberedLine, Segment

SEPARATOR_CHARS = 2  # between two messages in the text of a call


@dataclass(frozen=True, slots=True)
class Span:
    """Messages that one segment is written from."""

    lines: tuple[NumberedLine, ...]

    @property
    def first_seq(self) -> int:
        """The number of its first message."""
        return self.lines[0].seq

    @property
    def last_seq(self) -> int:
        """The number of its last message."""
        return self.lines[-1].seq

    @property
    def texts(self) -> list[str]:
        """The messages as texts."""
        return [line.text for line in self.lines]

    @property
    def characters(self) -> int:
        """The number of code points of its messages."""
        return sum(len(line.text) for line in self.lines)


def plan_segments(
    lines: Sequence[NumberedLine],
    segments: Iterable[Segment],
    *,
    compute_fingerprint: Callable[[Span], str],
    space: int,
) -> list[Span | Segment]:
    """Return what covers all lines, in order: segments that exist, and spans to summarize.

    A segment serves again if its span would have the same fingerprint now, for example after a
    rewind.
    A span has at most `space` characters, if it has more than one message.
    """
    plan: list[Span | Segment] = []
    seqs = [line.seq for line in lines]
    position = 0
    for segment in sorted(segments, key=lambda segment: (segment.first_seq, -segment.last_seq)):
        start, end = bisect_left(seqs, segment.first_seq), bisect_right(seqs, segment.last_seq)
        if not position <= start < end:
            continue
        span = Span(tuple(lines[start:end]))
        if compute_fingerprint(span) == segment.fingerprint:
            plan += divide_lines(lines[position:start], space)
            plan.append(segment)
            position = end
    plan += divide_lines(lines[position:], space)
    return plan


def divide_lines(lines: Sequence[NumberedLine], space: int) -> list[Span]:
    """Divide messages into as few spans as `space` characters allow, all about equally long.

    A message that is longer than the room is a span of its own.
    """
    total_chars = sum(map(_measure_line, lines))
    share = total_chars / max(1, len(_fill_spans(lines, space, share=space)))
    return _fill_spans(lines, space, share=share)


def _fill_spans(lines: Sequence[NumberedLine], space: int, *, share: float) -> list[Span]:
    """Return spans that end as near as possible to whole shares of the characters."""
    spans: list[Span] = []
    pending: list[NumberedLine] = []
    pending_chars = 0
    passed_chars = 0
    for line in lines:
        line_chars = _measure_line(line)
        is_share_full = passed_chars + line_chars / 2 > share * (len(spans) + 1)
        if pending and (is_share_full or pending_chars + line_chars > space):
            spans.append(Span(tuple(pending)))
            pending, pending_chars = [], 0
        pending.append(line)
        pending_chars += line_chars
        passed_chars += line_chars
    return [*spans, Span(tuple(pending))] if pending else spans


def _measure_line(line: NumberedLine) -> int:
    return len(line.text) + SEPARATOR_CHARS
