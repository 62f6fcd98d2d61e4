"""Render texts and tables for the admin pages."""

from collections.abc import Iterable, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


def render_preformatted(text: str) -> SafeString:
    """Return a text as HTML that shows its line breaks and spaces."""
    return format_html('<div class="run-text">{}</div>', text)


def render_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> SafeString:
    """Return a table; the cells may be HTML that was made safe."""
    head_cells = format_html_join("", "<th>{}</th>", ((name,) for name in head))
    body = format_html_join("", "<tr>{}</tr>", ((_render_cells(row),) for row in rows))
    return format_html(
        '<div class="run-scroll"><table class="run-table"><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>",
        head_cells,
        body,
    )


def _render_cells(row: Sequence[object]) -> SafeString:
    return format_html_join("", "<td>{}</td>", ((cell,) for cell in row))
