"""Texts of people and models as HTML, for the admin's pages."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

EXCERPT_CHARS = 120
# Columns of a session that no list shows, and that may be long.
SESSION_TEXTS = ("session__system_prompt", "session__compacted_summary")


def render_excerpt(text: str) -> SafeString:
    """Return the beginning of a text, escaped, in a column that is wide enough for it."""
    excerpt = Truncator(text).chars(EXCERPT_CHARS)
    return format_html('<div style="min-width: 20em">{}</div>', excerpt)


def render_preformatted(text: str) -> SafeString:
    """Return a text, escaped, with its own line breaks."""
    return format_html('<div style="white-space: pre-wrap; max-width: 60em">{}</div>', text or "–")
