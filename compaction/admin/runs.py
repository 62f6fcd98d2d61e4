"""The admin pages of compaction runs: what each did, and actions to retry, stop and rewind them."""

from functools import partial
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import path

from compaction.admin import calls, timeline
from compaction.admin.run_acts import RunActs
from compaction.admin.run_fields import BUTTONS, RunFields
from compaction.admin.run_list import PolicyFilter, RunColumns, WrongFilter
from compaction.models import CompactionRun

LONG_FIELDS = (
    "summary_before",
    "summary_after",
    "policy_snapshot",
    "edits",
    "targets",
    "state_after",
    "verification",
)


@admin.register(CompactionRun)
class CompactionRunAdmin(RunColumns, RunFields, RunActs, admin.ModelAdmin):
    """A record of a run. It can be read, retried and rewound, but never edited."""

    content_fields = (
        "instructions",
        "reason",
        "summaries",
        "summary_checks",
        "changes",
        "state_after_run",
        "error",
    )
    list_display = (
        "created_at",
        "session_title",
        "status_badge",
        "trigger",
        "policy",
        "shrinkage",
        "cost",
        "duration",
        "model",
    )
    list_select_related = ("session",)
    list_per_page = 50
    list_filter = ("status", WrongFilter, "trigger", PolicyFilter, "created_at")
    sortable_by = ()
    search_fields = ("=id", "=session__id")
    show_full_result_count = False
    actions = (
        "retry",
        "cancel",
        "requeue",
        "compact_now",
        "rewind_to_here",
        "rewind_to_before",
        "clear_summary",
        "verify",
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "buttons",
                    "id",
                    "session_link",
                    "trigger",
                    "policy",
                    "status",
                    "reason",
                    "instructions",
                )
            },
        ),
        (
            "What it did",
            {
                "fields": (
                    "summaries",
                    "summary_checks",
                    "stages_used",
                    "messages_compacted",
                    "tokens",
                    "boundary",
                    "originals",
                    "changes",
                )
            },
        ),
        ("What the model was asked", {"fields": ("call_tree",)}),
        ("State and memory", {"fields": ("state_after_run",), "classes": ("collapse",)}),
        ("Timeline", {"fields": ("timeline",)}),
        (
            "What it took",
            {
                "fields": (
                    "model",
                    "summary_model",
                    "provider_calls",
                    "attempts",
                    "input_tokens",
                    "cached_tokens",
                    "output_tokens",
                    "total_cost",
                    "error",
                )
            },
        ),
        ("Policy as it was", {"fields": ("policy_snapshot",), "classes": ("collapse",)}),
    )

    class Media:
        css: ClassVar = {"all": ("compaction/runs.css",)}

    def get_urls(self) -> list[Any]:
        """Add the pages of a call and of a session's timeline."""
        pages = [
            path(
                "<uuid:run_id>/calls/<int:number>/",
                self.admin_site.admin_view(partial(calls.show_call, self)),
                name="compaction_call",
            ),
            path(
                "sessions/<uuid:session_id>/",
                self.admin_site.admin_view(partial(timeline.show_timeline, self)),
                name="compaction_session_timeline",
            ),
        ]
        return [*pages, *super().get_urls()]

    def get_readonly_fields(
        self, request: HttpRequest, obj: CompactionRun | None = None
    ) -> list[str]:
        """Return all fields."""
        return [
            name
            for _, options in self.fieldsets
            for name in options["fields"]
            if isinstance(name, str)
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: runs are requested, not typed in."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: CompactionRun | None = None) -> bool:
        """Return whether runs may be acted on; the record of one is never changed by a form."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: CompactionRun | None = None) -> bool:
        """Return False for a record; it goes with its session, or when its time is over."""
        return obj is None and super().has_delete_permission(request)

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the acts, without Django's own that deletes."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> CompactionRun | None:
        """Return the run, with the names of the acts that this person may do."""
        run = super().get_object(request, object_id, from_field)
        if run is not None:
            run.act_names = [name for name in BUTTONS if name in self.get_actions(request)]
        return run

    def get_queryset(self, request: HttpRequest) -> QuerySet[CompactionRun]:
        """Return the runs, without their long texts where a list is shown."""
        runs = super().get_queryset(request)
        match = request.resolver_match
        if match is None or not (match.url_name or "").endswith("_changelist"):
            return runs
        return runs.defer(*LONG_FIELDS)
