"""How full a context is, in a terminal: one line, or all of its parts."""

from collections.abc import Mapping
from typing import Any

from rich.bar import Bar
from rich.table import Table

from chatcore.sessions.token_estimate import format_tokens

COLORS = {"ok": "green", "warning": "yellow", "critical": "red"}
LABELS = {
    "system_prompt": "system prompt",
    "summary": "summary",
    "conversation_history": "history",
    "current_prompt": "newest message",
    "tool_definitions": "tools",
    "file_attachments": "files",
}
BAR_CHARS = 30


def format_usage(usage: Mapping[str, Any]) -> str:
    """`41.2k / 128k · 32 %`; without a window, only what is used. `usage` is the `context.usage` event's data."""
    used_tokens, window = usage.get("estimated_input_tokens") or 0, usage.get("context_window")
    return (
        f"{format_tokens(used_tokens)} / {format_tokens(window)} · {used_tokens / window:.0%}".replace(
            "%", " %"
        )
        if window
        else format_tokens(used_tokens)
    )


def choose_color(usage: Mapping[str, Any]) -> str:
    """By the level."""
    return COLORS.get(str(usage.get("level")), "dim")


def build_usage_table(usage: Mapping[str, Any]) -> Table:
    """The whole, its parts with a bar each, and where compaction begins."""
    grid = Table(box=None, show_header=False, padding=(0, 1))
    used_tokens, window = usage.get("estimated_input_tokens") or 0, usage.get("context_window")
    grid.add_row(
        "context",
        f"[{choose_color(usage)}]{format_usage(usage)}[/]",
        Bar(window or used_tokens or 1, 0, used_tokens, width=BAR_CHARS, color=choose_color(usage)),
    )
    for name, tokens in (usage.get("breakdown") or {}).items():
        grid.add_row(
            f"[dim]{LABELS.get(name, name)}[/]",
            f"{tokens:,}",
            Bar(window or used_tokens or 1, 0, tokens, width=BAR_CHARS, color="blue"),
        )
    if usage.get("threshold_tokens"):
        grid.add_row(
            "[dim]compacts above[/]",
            f"{usage['threshold_tokens']:,}",
            f"[dim]policy {usage.get('policy')}[/]",
        )
    return grid
