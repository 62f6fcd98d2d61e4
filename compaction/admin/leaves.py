"""The admin page of leaves: what was written of each span of messages, to read."""

from django.contrib import admin
from django.http import HttpRequest

from compaction.admin.rendering import render_preformatted
from compaction.models import SummaryLeaf


@admin.register(SummaryLeaf)
class SummaryLeafAdmin(admin.ModelAdmin):
    """Leaves are written by runs, and deleted with a message that they were written from.

    Where one is deleted here, the summary that was composed of it stays as it is, word for word.
    """

    content_fields = ("summary_text",)
    list_display = ("session_id", "first_seq", "last_seq", "kind", "tokens", "created_at")
    narrow_filters = ("kind",)  # once the list shows one session
    narrow_ordering = ("-last_seq",)
    sortable_by = ()
    list_defer = ("text",)
    search_fields = ("=session__id",)
    ordering = ("-pk",)
    fields = (
        "session_id",
        "run",
        "kind",
        "first_seq",
        "last_seq",
        "tokens",
        "created_at",
        "summary_text",
    )
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: runs write these rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: SummaryLeaf | None = None) -> bool:
        """Return False: a leaf says what its messages said."""
        return False

    @admin.display(description="text")
    def summary_text(self, leaf: SummaryLeaf) -> str:
        """Return the text with its line breaks."""
        return render_preformatted(leaf.text)
