"""Show in a terminal how full the context is: one line, or a table of its parts."""

from collections.abc import Mapping
from typing import Any

from rich.bar import Bar
from rich.table import Table

from chatcore.base.token_estimate import format_tokens

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
    """Return how full the context is, as `41.2k / 128k · 32 %`; without a window only the tokens.

    `usage` is the data of the event `context.usage`.
    """
    used_tokens = usage.get("estimated_input_tokens") or 0
    window = usage.get("context_window")
    if not window:
        return format_tokens(used_tokens)
    percent = f"{used_tokens / window:.0%}".replace("%", " %")
    return f"{format_tokens(used_tokens)} / {format_tokens(window)} · {percent}"


def choose_color(usage: Mapping[str, object]) -> str:
    """Return the color of the usage's level; `dim` without a level."""
    return COLORS.get(str(usage.get("level")), "dim")


def build_usage_table(usage: Mapping[str, Any]) -> Table:
    """Build a table of the context and its parts, with a bar each, and of the threshold."""
    used_tokens = usage.get("estimated_input_tokens") or 0
    full_tokens = usage.get("context_window") or used_tokens or 1
    color = choose_color(usage)

    def build_bar(tokens: int, color: str) -> Bar:
        return Bar(full_tokens, 0, tokens, width=BAR_CHARS, color=color)

    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_row("context", f"[{color}]{format_usage(usage)}[/]", build_bar(used_tokens, color))
    for name, tokens in (usage.get("breakdown") or {}).items():
        label = f"[dim]{LABELS.get(name, name)}[/]"
        table.add_row(label, f"{tokens:,}", build_bar(tokens, "blue"))
    threshold = usage.get("threshold_tokens")
    if threshold:
        policy = f"[dim]policy {usage.get('policy')}[/]"
        table.add_row("[dim]compacts above[/]", f"{threshold:,}", policy)
    return table
