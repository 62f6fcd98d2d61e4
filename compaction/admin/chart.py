"""Draw how large the requests of a session were: a line of tokens, its threshold, its drops."""

from collections.abc import Sequence
from itertools import pairwise

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from compaction.sessions.records import TurnSize

WIDTH, HEIGHT = 960, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 14, 24
MAX_DOTS = 60  # with more answers the line alone says enough
DROP_SHARE = 0.2  # a request that is so much smaller than the one before is a drop


def draw_sizes(sizes: Sequence[TurnSize], *, threshold: int | None) -> SafeString | str:
    """Return a picture of the sent tokens of each answer, in order, as SVG."""
    if not sizes:
        return ""
    top = max(threshold or 0, *(size.sent_tokens for size in sizes), 1) * 1.08
    width = WIDTH - LEFT - RIGHT

    def place_x(index: int) -> float:
        return LEFT + width * (index + 0.5) / len(sizes)

    def place_y(tokens: int) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - tokens / top)

    points = [(place_x(index), place_y(size.sent_tokens)) for index, size in enumerate(sizes)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    floor = HEIGHT - BOTTOM
    drops = [
        (f"{points[index][0]:.1f}", TOP, floor, _describe_drop(before.sent_tokens, size))
        for index, (before, size) in enumerate(pairwise(sizes), start=1)
        if size.sent_tokens < before.sent_tokens * (1 - DROP_SHARE)
    ]
    return format_html(
        '<svg class="run-chart" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">{body}</svg>',
        w=WIDTH,
        h=HEIGHT,
        label=f"Tokens sent with {len(sizes)} answers",
        body=format_html(
            '<polygon class="area" points="{x0},{floor} {line} {x1},{floor}"/>'
            '<line class="axis" x1="{left}" y1="{floor}" x2="{right}" y2="{floor}"/>'
            '{drops}<polyline class="sent" points="{line}"/>{dots}{limit}{ends}',
            x0=f"{points[0][0]:.1f}",
            x1=f"{points[-1][0]:.1f}",
            left=LEFT,
            right=WIDTH - RIGHT,
            floor=floor,
            line=line,
            drops=format_html_join(
                "",
                '<line class="drop" x1="{0}" y1="{1}" x2="{0}" y2="{2}"><title>{3}</title></line>',
                drops,
            ),
            dots=_draw_dots(points, sizes) if len(sizes) <= MAX_DOTS else "",
            limit=_draw_limit(threshold, place_y(threshold)) if threshold else "",
            ends=_draw_texts(sizes, place_y(max(size.sent_tokens for size in sizes))),
        ),
    )


def _draw_dots(points: Sequence[tuple[float, float]], sizes: Sequence[TurnSize]) -> SafeString:
    """Return a dot for each answer; a line of one point would not be seen."""
    dots = [
        (f"{x:.1f}", f"{y:.1f}", f"message {size.seq}: {size.sent_tokens:,} tokens")
        for (x, y), size in zip(points, sizes, strict=True)
    ]
    return format_html_join(
        "", '<circle class="dot" cx="{}" cy="{}" r="3"><title>{}</title></circle>', dots
    )


def _describe_drop(before: int, size: TurnSize) -> str:
    return f"message {size.seq}: {before:,} → {size.sent_tokens:,} tokens"


def _draw_limit(threshold: int, y: float) -> SafeString:
    return format_html(
        '<line class="limit" x1="{}" y1="{}" x2="{}" y2="{}"/>'
        '<text x="{}" y="{}" text-anchor="end">threshold {}</text>',
        LEFT,
        f"{y:.1f}",
        WIDTH - RIGHT,
        f"{y:.1f}",
        WIDTH - RIGHT,
        f"{y - 4:.1f}",
        f"{threshold:,}",
    )


def _draw_texts(sizes: Sequence[TurnSize], top_y: float) -> SafeString:
    largest = max(size.sent_tokens for size in sizes)
    texts = [
        (LEFT - 6, f"{top_y + 4:.1f}", "end", f"{largest:,}"),
        (LEFT - 6, HEIGHT - BOTTOM, "end", "0"),
        (LEFT, HEIGHT - 6, "start", f"message {sizes[0].seq}"),
        (WIDTH - RIGHT, HEIGHT - 6, "end", f"message {sizes[-1].seq}"),
    ]
    return format_html_join("", '<text x="{}" y="{}" text-anchor="{}">{}</text>', texts)
