"""Compaction for operators: runs with their summaries side by side, policies, and what past runs mean for a session."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from compaction.backends import registry as backend_registry
from compaction.core.knobs import PolicyError
from compaction.core.state import render_state
from compaction.models import (
    CompactionPolicy,
    CompactionRun,
    ModelRatio,
    SessionState,
    WorkingState,
)
from compaction.policies import UnknownPolicy
from compaction.runs import engine, queue
from compaction.sizing import session_context
from compaction.summaries import state as summary_state


@admin.register(CompactionRun)
class CompactionRunAdmin(admin.ModelAdmin):
    """A record: read, retried and rewound, never edited."""

    list_display = (
        "created_at",
        "session_id",
        "trigger",
        "policy",
        "status",
        "tokens_before",
        "tokens_after",
        "model",
        "cost",
        "duration",
    )
    list_filter = ("status", "trigger", "policy", "created_at")
    search_fields = ("=id", "=session__id")
    date_hierarchy = "created_at"
    show_full_result_count = False
    actions = (
        "retry",
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
                    "stages_used",
                    "messages_compacted",
                    "tokens",
                    "boundary",
                    "originals",
                    "changes",
                )
            },
        ),
        ("State and memory", {"fields": ("state",), "classes": ("collapse",)}),
        ("Timeline", {"fields": ("timeline",)}),
        (
            "What it took",
            {
                "fields": (
                    "model",
                    "provider_calls",
                    "attempts",
                    "input_tokens",
                    "output_tokens",
                    "cost",
                    "error",
                )
            },
        ),
        ("Policy as it was", {"fields": ("policy_snapshot",), "classes": ("collapse",)}),
    )

    def get_readonly_fields(
        self, request: HttpRequest, obj: CompactionRun | None = None
    ) -> list[str]:
        """All of them."""
        return [
            name
            for _, options in self.fieldsets
            for name in options["fields"]
            if isinstance(name, str)
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Runs are asked for, not typed in."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[CompactionRun]:
        """Without the long texts where a list is shown."""
        rows = super().get_queryset(request)
        is_list = request.resolver_match is not None and (
            request.resolver_match.url_name or ""
        ).endswith("_changelist")
        return (
            rows.defer(
                "summary_before",
                "summary_after",
                "policy_snapshot",
                "edits",
                "targets",
                "state_after",
            )
            if is_list
            else rows
        )

    @admin.display(description="session")
    def session_link(self, run: CompactionRun) -> SafeString:
        """To the conversation and its stored messages."""
        return format_html(
            '<a href="{}">{}</a>',
            reverse("admin:chatcore_session_change", args=[run.session_id]),
            run.session_id,
        )

    @admin.display(description="summary before and after")
    def summaries(self, run: CompactionRun) -> SafeString:
        """Side by side, as text."""
        sides = (("Before", run.summary_before or "none"), ("After", run.summary_after or "none"))
        cells = format_html_join(
            "",
            '<td style="width:50%;vertical-align:top;white-space:pre-wrap"><b>{}</b>\n{}</td>',
            sides,
        )
        return format_html('<table style="width:100%"><tr>{}</tr></table>', cells)

    @admin.display(description="tokens")
    def tokens(self, run: CompactionRun) -> str:
        """Of the whole next request."""
        return (
            "not known"
            if run.tokens_saved is None
            else f"{run.tokens_before:,} → {run.tokens_after:,} ({run.tokens_saved:,} saved)"
        )

    @admin.display(description="oldest message sent")
    def boundary(self, run: CompactionRun) -> str:
        """Sequence numbers."""
        return f"{run.boundary_before or 'the first'} → {run.boundary_after or 'unchanged'}"

    @admin.display(description="originals")
    def originals(self, run: CompactionRun) -> str:
        """To the messages behind the summary, as they are stored."""
        boundary_seq = run.boundary_after or run.boundary_before
        if not boundary_seq:
            return "none is behind a summary"
        url = reverse("admin:chatcore_message_changelist")
        return format_html(
            '<a href="{}?session__id__exact={}&seq__lt={}">messages before {}</a>',
            url,
            run.session_id,
            boundary_seq,
            boundary_seq,
        )

    @admin.display(description="messages changed")
    def changes(self, run: CompactionRun) -> str:
        """What became of each: its size, and the text the model is shown instead."""
        if not run.targets:
            return "none"
        replacements = {edit["seq"]: edit["replacement"] for edit in run.edits}
        columns = ("seq", "role", "tool", "method", "chars_before", "chars_after")
        rows = (
            (*(target[name] for name in columns), replacements.get(target["seq"], ""))
            for target in run.targets
        )
        cell = '<td style="vertical-align:top">{}</td>'
        body = format_html_join(
            "", "<tr>" + cell * 6 + '<td style="white-space:pre-wrap">{}</td></tr>', rows
        )
        head = format_html_join("", "<th>{}</th>", ((name,) for name in (*columns, "shown as")))
        return format_html("<table><tr>{}</tr>{}</table>", head, body)

    @admin.display(description="as the run left it")
    def state(self, run: CompactionRun) -> SafeString:
        """As the model is shown it."""
        return format_html(
            '<div style="white-space:pre-wrap">{}</div>',
            render_state(summary_state.parse_structured_state(run.state_after)) or "empty",
        )

    @admin.display(description="timeline")
    def timeline(self, run: CompactionRun) -> SafeString:
        """What happened when."""
        steps = (
            ("asked for", run.created_at),
            ("queue told", run.enqueued_at),
            ("first claimed", run.started_at),
            ("lease until", run.lease_until),
            ("ended", run.finished_at),
        )
        return format_html_join(
            "",
            "<div>{} — {}</div>",
            ((f"{moment:%Y-%m-%d %H:%M:%S}", name) for name, moment in steps if moment),
        )

    @admin.display(description="seconds")
    def duration(self, run: CompactionRun) -> str:
        """From the first claim to the end."""
        return "" if run.duration_ms is None else f"{run.duration_ms / 1000:.1f}"

    @admin.action(description="Retry: ask for the same run again", permissions=["change"])
    def retry(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """By hand, with the same policy and instructions."""
        self._apply_to_each(request, runs, _request_again, "asked for again")

    @admin.action(
        description="Rewind to here: undo what came after the run", permissions=["change"]
    )
    def rewind_to_here(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """What the model saw right after it is what it sees again."""
        self._apply_to_each(request, runs, engine.rewind_to_run, "what came after it was rewound")

    @admin.action(description="Rewind to before the run", permissions=["change"])
    def rewind_to_before(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Undo applied runs."""
        self._apply_to_each(request, runs, engine.rewind_run, "rewound")

    @admin.action(description="Compact these sessions now", permissions=["change"])
    def compact_now(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Under their own policies; a worker does it."""
        self._apply_to_each(
            request,
            runs,
            lambda run: engine.request_run(run.session_id, trigger="manual"),
            "asked for",
        )

    @admin.action(description="Clear summary: send the full history again", permissions=["change"])
    def clear_summary(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Of the sessions of these runs; messages and revisions stay."""
        self._apply_to_each(
            request, runs, engine.forget_summary, "its session sends the full history again"
        )

    @admin.action(
        description="Verify: check all that is stored of the session", permissions=["view"]
    )
    def verify(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Every invariant of the sessions of these runs."""
        for run in runs:
            violations = backend_registry.get_backend().find_violations(run.session_id)
            report = " ".join(violations) or "everything holds."
            self.message_user(
                request,
                f"{run.session_id}: {report}",
                messages.ERROR if violations else messages.SUCCESS,
            )

    def _apply_to_each(
        self,
        request: HttpRequest,
        runs: QuerySet[CompactionRun],
        operation: Callable[[CompactionRun], Any],
        success_text: str,
    ) -> None:
        for run in runs:
            try:
                operation(run)
            except (
                engine.NotRewindable,
                session_context.NoSuchSession,
                queue.RunConflict,
                UnknownPolicy,
                PolicyError,
            ) as error:
                self.message_user(request, f"{run.pk}: {error}", messages.ERROR)
            else:
                self.message_user(request, f"{run.pk}: {success_text}.", messages.SUCCESS)


def _request_again(run: CompactionRun) -> CompactionRun:
    options: queue.RunOptions = {
        "policy": run.policy,
        "instructions": run.instructions,
        "up_to_seq": run.up_to_seq,
        "stages": run.only_stages,
    }
    return engine.request_run(run.session_id, trigger="manual", **options)


@admin.register(CompactionPolicy)
class CompactionPolicyAdmin(admin.ModelAdmin):
    """Policies of the operator's own: a preset with overrides, validated when saved."""

    list_display = ("name", "base", "overrides")
    search_fields = ("name",)


@admin.register(SessionState)
class SessionStateAdmin(admin.ModelAdmin):
    """Why a session's automatic runs wait or have stopped; deleting a row forgets it."""

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
        """Runs write these."""
        return False


@admin.register(ModelRatio)
class ModelRatioAdmin(admin.ModelAdmin):
    """What the counts of each language model have taught; deleting a row forgets it."""

    list_display = ("model", "ratio", "samples", "window", "registered")
    search_fields = ("model",)
    readonly_fields = ("model", "samples", "registered")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Responses and refusals write these."""
        return False


@admin.register(WorkingState)
class WorkingStateAdmin(admin.ModelAdmin):
    """What is kept beside a session's summary: read here, changed by runs and by the session's owner."""

    list_display = ("session_id", "runs")
    search_fields = ("=session__id",)
    fields = ("session_id", "runs", "kept")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Runs write these."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: WorkingState | None = None) -> bool:
        """Over REST, by its owner."""
        return False

    @admin.display(description="runs")
    def runs(self, row: WorkingState) -> SafeString:
        """The session's compactions, each with the state as it left it."""
        url = reverse("admin:compaction_compactionrun_changelist")
        return format_html(
            '<a href="{}?session__id__exact={}">of this session</a>', url, row.session_id
        )

    @admin.display(description="state and memory")
    def kept(self, row: WorkingState) -> SafeString:
        """As the model is shown it."""
        return format_html(
            '<div style="white-space:pre-wrap">{}</div>',
            render_state(summary_state.parse_structured_state(row.__dict__)),
        )
