"""The admin pages of the ledger, and of segments: what was written of each span of messages."""

from django.contrib import admin

from chatcore.admin.base import UneditableAdmin
from compaction.admin.base import render_preformatted
from compaction.memory.models import LedgerLine, SummaryLeaf


@admin.register(SummaryLeaf)
class SummaryLeafAdmin(UneditableAdmin):
    """Segments are written by runs, and deleted with a message that they were written from.

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

    @admin.display(description="text")
    def summary_text(self, segment: SummaryLeaf) -> str:
        return render_preformatted(segment.text)


@admin.register(LedgerLine)
class LedgerLineAdmin(UneditableAdmin):
    """The ledgers of sessions, line by line. Their owners change them over REST or on the page."""

    content_fields = ("text", "original_text", "key")
    list_display = ("text", "kind", "status", "pinned", "is_edited", "seq", "session_id")
    narrow_filters = ("kind", "status", "pinned", "is_edited")  # once the list shows one session
    narrow_ordering = ("-seq", "-pk")
    sortable_by = ()
    search_fields = ("=session__id",)
    ordering = ("-pk",)
    fields = (
        "session_id",
        "kind",
        "text",
        "original_text",
        "seq",
        "role",
        "key",
        "status",
        "superseded_by",
        "pinned",
        "is_edited",
        "is_withdrawn",
        "created_at",
    )
