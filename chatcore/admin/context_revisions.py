"""The admin page of context revisions, which are the summaries and boundaries in their order."""

from django.contrib import admin
from django.utils.safestring import SafeString

from chatcore.admin.base import ReadOnlyAdmin
from chatcore.admin.texts import SESSION_TEXTS, render_excerpt, render_preformatted
from chatcore.models import ContextRevision


@admin.register(ContextRevision)
class ContextRevisionAdmin(ReadOnlyAdmin):
    content_fields = ("excerpt", "summary", "summary_text")
    list_display = ("version", "session", "source", "first_sent", "excerpt", "created_at")
    narrow_filters = ("source",)
    narrow_ordering = ("-version",)
    sortable_by = ()
    list_select_related = ("session",)
    list_defer = ("background", "placement", "kept_seqs", *SESSION_TEXTS)
    ordering = ("-id",)
    fields = (
        ("session", "version", "source", "restores"),
        ("first_sent", "boundary_timestamp"),
        "summary_text",
        ("run", "created_at"),
    )

    @admin.display(description="First message sent as it is")
    def first_sent(self, revision: ContextRevision) -> str:
        return str(revision.boundary_seq or "–")

    @admin.display(description="Summary")
    def excerpt(self, revision: ContextRevision) -> SafeString:
        return render_excerpt(revision.summary or "")

    @admin.display(description="Summary")
    def summary_text(self, revision: ContextRevision) -> SafeString:
        return render_preformatted(revision.summary or "")
