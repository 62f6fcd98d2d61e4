"""The admin page of what Lota keeps."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chatcore.admin.base import UneditableAdmin
from compaction.admin.base import render_preformatted
from compaction.systems.lota.models import WorkingState
from compaction.systems.lota.state import render_state
from compaction.systems.lota.store import parse_structured_state


@admin.register(WorkingState)
class WorkingStateAdmin(UneditableAdmin):
    """The structured state and memory of a session. Its owner changes them over REST."""

    content_fields = ("state_text",)
    list_display = ("session_id", "runs")
    sortable_by = ()
    list_defer = ("state", "memory", "memory_summary")
    search_fields = ("=session__id",)
    ordering = ("pk",)
    fields = ("session_id", "runs", "state_text")

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
        return render_preformatted(render_state(parse_structured_state(vars(row))))
