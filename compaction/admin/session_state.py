"""The admin pages of what compaction stores about a session in addition to its runs."""

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from compaction.admin.base import UnaddableAdmin, UneditableAdmin, render_preformatted
from compaction.core.state import render_state
from compaction.models import MAX_FRUITLESS_RUNS, ModelRatio, SessionState, WorkingState
from compaction.summaries import state as summary_state


@admin.register(ModelRatio)
class ModelRatioAdmin(UnaddableAdmin):
    """What was learned of a language model. Deleting a row forgets it."""

    list_display = (
        "model",
        "ratio",
        "samples",
        "window",
        "registered",
        "prompt_speed",
        "answer_speed",
    )
    search_fields = ("model",)
    readonly_fields = ("model", "samples", "registered", "prompt_speed", "answer_speed")


class StateFilter(admin.SimpleListFilter):
    """Why nothing is compacted by itself. Each is answered by an index of the few such rows."""

    title = "automatic runs"
    parameter_name = "automatic"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [
            ("stopped", "stopped: the last gained nothing"),
            ("waiting", "wait after a failure"),
            ("trimming", "failed: requests are trimmed"),
        ]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[SessionState]
    ) -> QuerySet[SessionState]:
        reasons = {
            "stopped": Q(fruitless__gte=MAX_FRUITLESS_RUNS),
            "waiting": Q(not_before__gt=Now()),
            "trimming": Q(trimming=True),
        }
        return queryset.filter(reasons.get(self.value() or "", Q()))


@admin.register(SessionState)
class SessionStateAdmin(UnaddableAdmin):
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
    list_filter = (StateFilter,)
    sortable_by = ()
    search_fields = ("=session__id",)
    ordering = ("pk",)
    readonly_fields = ("session",)


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
        return render_preformatted(render_state(summary_state.parse_structured_state(vars(row))))
