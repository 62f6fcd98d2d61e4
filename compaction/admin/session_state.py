"""The admin pages of what compaction stores about a session in addition to its runs."""

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest

from chatcore.admin.base import ChatcoreAdmin
from compaction.models import MAX_FRUITLESS_RUNS, ModelRatio, SessionState


class LearnedAdmin(ChatcoreAdmin):
    """Rows that the program writes. Operators may correct them; deleting one forgets it."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(ModelRatio)
class ModelRatioAdmin(LearnedAdmin):
    """What was learned of a language model."""

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
class SessionStateAdmin(LearnedAdmin):
    """Why the automatic runs of a session wait or have stopped."""

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
