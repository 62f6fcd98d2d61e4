"""Render texts for the admin pages."""

from django.utils.html import format_html
from django.utils.safestring import SafeString


def render_preformatted(text: str) -> SafeString:
    """Return a text as HTML that shows its line breaks and spaces."""
    return format_html('<div style="white-space:pre-wrap">{}</div>', text)
