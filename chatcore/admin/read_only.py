"""What the admin pages share: rows that cannot be changed, and texts as HTML."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

EXCERPT_CHARS = 120
# Columns of a session that no list shows, and that may be long.
SESSION_TEXTS = ("session__system_prompt", "session__compacted_summary")


class ReadOnlyAdmin(admin.ModelAdmin):
    """An admin page of rows that only the program writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def render_excerpt(text: str) -> SafeString:
    """Return the beginning of a text, escaped, in a column that is wide enough for it."""
    excerpt = Truncator(text).chars(EXCERPT_CHARS)
    return format_html('<div style="min-width: 20em">{}</div>', excerpt)


def render_preformatted(text: str) -> SafeString:
    """Return a text, escaped, with its own line breaks."""
    return format_html('<div style="white-space: pre-wrap; max-width: 60em">{}</div>', text or "–")
