"""The admin pages of what compaction stores about a session in addition to its runs."""

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from compaction.admin.rendering import render_preformatted
from compaction.core.state import render_state
from compaction.models import LedgerLine, SessionState, WorkingState
from compaction.summaries import state as summary_state


@admin.register(SessionState)
class SessionStateAdmin(admin.ModelAdmin):
    """Why the automatic runs of a session wait or have stopped. Deleting a row forgets it."""

    list_display = (
        "session_id",
        "failures",
        "not_before",
        "fruitless",
        "trimming",
        "learned_window",
        "learned_scale",
    )
    list_filter = ("trimming",)
    search_fields = ("=session__id",)
    readonly_fields = ("session",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: runs write these rows."""
        return False


@admin.register(WorkingState)
class WorkingStateAdmin(admin.ModelAdmin):
    """The structured state and memory of a session. Its owner changes them over REST."""

    content_fields = ("state_text",)
    list_display = ("session_id", "runs")
    search_fields = ("=session__id",)
    fields = ("session_id", "runs", "state_text")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: runs write these rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: WorkingState | None = None) -> bool:
        """Return False: only the owner of the session may change them."""
        return False

    @admin.display(description="runs")
    def runs(self, row: WorkingState) -> SafeString:
        """Return a link to the runs of the session, each of which shows the state after it."""
        url = reverse("admin:compaction_compactionrun_changelist")
        return format_html(
            '<a href="{}?session__id__exact={}">of this session</a>', url, row.session_id
        )

    @admin.display(description="state and memory")
    def state_text(self, row: WorkingState) -> SafeString:
        """Return the state as the model reads it."""
        return render_preformatted(render_state(summary_state.parse_structured_state(vars(row))))


@admin.register(LedgerLine)
class LedgerLineAdmin(admin.ModelAdmin):
    """The ledgers of sessions, line by line. Their owners change them over REST or on the page."""

    content_fields = ("text", "original_text", "key")
    list_display = ("text", "kind", "status", "pinned", "is_edited", "seq", "session_id")
    list_filter = ("kind", "status", "pinned", "is_edited")
    search_fields = ("=session__id",)
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
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: lines are recognized, or written by the owner of the session."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: LedgerLine | None = None) -> bool:
        """Return False: only the owner of the session may change them."""
        return False
