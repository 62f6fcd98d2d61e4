"""The admin pages of compaction runs: what each did, and actions to retry and rewind them."""

from collections.abc import Callable
from typing import Any, Unpack
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from compaction.admin.rendering import render_preformatted
from compaction.backends import registry as backend_registry
from compaction.core.knobs import PolicyError
from compaction.core.state import render_state
from compaction.models import CompactionRun
from compaction.policies import UnknownPolicy
from compaction.runs import allowance, engine, queue
from compaction.sizing import session_context
from compaction.summaries import state as summary_state

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
class CompactionRunAdmin(admin.ModelAdmin):
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
        ("State and memory", {"fields": ("state_after_run",), "classes": ("collapse",)}),
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[CompactionRun]:
        """Return the runs, without their long texts where a list is shown."""
        runs = super().get_queryset(request)
        match = request.resolver_match
        if match is None or not (match.url_name or "").endswith("_changelist"):
            return runs
        return runs.defer(*LONG_FIELDS)

    @admin.display(description="session")
    def session_link(self, run: CompactionRun) -> SafeString:
        """Return a link to the conversation and its stored messages."""
        model = apps.get_model(settings.COMPACTION["SESSION_MODEL"])
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        try:
            address = reverse(name, args=[run.session_id])
        except NoReverseMatch:  # a host need not show its conversations in the admin
            return format_html("{}", run.session_id)
        return format_html('<a href="{}">{}</a>', address, run.session_id)

    @admin.display(description="summary before and after")
    def summaries(self, run: CompactionRun) -> SafeString:
        """Return both summaries side by side, as text."""
        sides = (("Before", run.summary_before or "none"), ("After", run.summary_after or "none"))
        cells = format_html_join(
            "",
            '<td style="width:50%;vertical-align:top;white-space:pre-wrap"><b>{}</b>\n{}</td>',
            sides,
        )
        return format_html('<table style="width:100%"><tr>{}</tr></table>', cells)

    @admin.display(description="summary checked")
    def summary_checks(self, run: CompactionRun) -> SafeString | str:
        """Return what the checks of the summary found, and what was done about it."""
        if not run.verification:
            return "not checked"
        findings = run.verification["findings"]
        if not findings:
            return "nothing was wrong"
        rows = [(item["check"], item["action"], item["text"]) for item in findings]
        body = format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td></tr>", rows)
        return format_html("<table>{}</table>", body)

    @admin.display(description="tokens")
    def tokens(self, run: CompactionRun) -> str:
        """Return the tokens of the whole next request before and after the run."""
        if run.tokens_saved is None:
            return "not known"
        return f"{run.tokens_before:,} → {run.tokens_after:,} ({run.tokens_saved:,} saved)"

    @admin.display(description="oldest message sent")
    def boundary(self, run: CompactionRun) -> str:
        """Return the boundary before and after the run, as numbers of messages."""
        return f"{run.boundary_before or 'the first'} → {run.boundary_after or 'unchanged'}"

    @admin.display(description="originals")
    def originals(self, run: CompactionRun) -> str:
        """Return a link to the stored messages that the summary replaces."""
        boundary_seq = run.boundary_after or run.boundary_before
        if not boundary_seq:
            return "no message is replaced by a summary"
        try:
            url = reverse("admin:chatcore_message_changelist")
        except NoReverseMatch:  # another host
            return f"messages before {boundary_seq}"
        return format_html(
            '<a href="{}?session__id__exact={}&seq__lt={}">messages before {}</a>',
            url,
            run.session_id,
            boundary_seq,
            boundary_seq,
        )

    @admin.display(description="messages changed")
    def changes(self, run: CompactionRun) -> str:
        """Return a table of the changed messages: their sizes, and the text that replaces each."""
        if not run.targets:
            return "none"
        replacements = {edit["seq"]: edit["replacement"] for edit in run.edits}
        columns = ("seq", "role", "tool", "method", "chars_before", "chars_after")
        rows = []
        for target in run.targets:
            cells = [target[name] for name in columns]
            rows.append((*cells, replacements.get(target["seq"], "")))
        cell = '<td style="vertical-align:top">{}</td>'
        body = format_html_join(
            "", "<tr>" + cell * 6 + '<td style="white-space:pre-wrap">{}</td></tr>', rows
        )
        head_cells = [(name,) for name in (*columns, "replacement")]
        head = format_html_join("", "<th>{}</th>", head_cells)
        return format_html("<table><tr>{}</tr>{}</table>", head, body)

    @admin.display(description="after the run")
    def state_after_run(self, run: CompactionRun) -> SafeString:
        """Return the structured state and memory as the model reads them."""
        structured_state = summary_state.parse_structured_state(run.state_after)
        return render_preformatted(render_state(structured_state) or "empty")

    @admin.display(description="timeline")
    def timeline(self, run: CompactionRun) -> SafeString:
        """Return the times of the run's steps."""
        steps = (
            ("requested", run.created_at),
            ("sent to the queue", run.enqueued_at),
            ("first claimed", run.started_at),
            ("lease until", run.lease_until),
            ("ended", run.finished_at),
        )
        lines = [(f"{moment:%Y-%m-%d %H:%M:%S}", name) for name, moment in steps if moment]
        return format_html_join("", "<div>{} — {}</div>", lines)

    @admin.display(description="seconds")
    def duration(self, run: CompactionRun) -> str:
        """Return the seconds from the first claim to the end."""
        return "" if run.duration_ms is None else f"{run.duration_ms / 1000:.1f}"

    @admin.action(description="Retry: request the same run again", permissions=["change"])
    def retry(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Request the runs again by hand, with the same policy and instructions."""
        self._apply_to_each(
            request,
            runs,
            lambda run: _request_again(run, user_pk=request.user.pk),
            "requested again",
        )

    @admin.action(
        description="Rewind to here: undo what came after the run", permissions=["change"]
    )
    def rewind_to_here(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Show the model what it saw right after the run."""
        self._apply_to_each(request, runs, engine.rewind_to_run, "what came after it was rewound")

    @admin.action(description="Rewind to before the run", permissions=["change"])
    def rewind_to_before(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Show the model what it saw before the run."""
        self._apply_to_each(request, runs, engine.rewind_run, "rewound")

    @admin.action(description="Compact these sessions now", permissions=["change"])
    def compact_now(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Request a run for each session under its own policy; a worker executes it."""
        self._apply_to_each(
            request,
            runs,
            lambda run: _request_run(run.session_id, user_pk=request.user.pk),
            "requested",
        )

    @admin.action(description="Clear summary: send the full history again", permissions=["change"])
    def clear_summary(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Forget the summaries of the runs' sessions. Messages and revisions stay."""
        self._apply_to_each(
            request, runs, engine.forget_summary, "its session sends the full history again"
        )

    @admin.action(
        description="Verify: check all that is stored of the session", permissions=["view"]
    )
    def verify(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> None:
        """Check every invariant of the runs' sessions, and show what does not hold."""
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
                allowance.TooManyRuns,
                UnknownPolicy,
                PolicyError,
            ) as error:
                self.message_user(request, f"{run.pk}: {error}", messages.ERROR)
            else:
                self.message_user(request, f"{run.pk}: {success_text}.", messages.SUCCESS)


def _request_again(run: CompactionRun, *, user_pk: Any) -> CompactionRun:
    options: queue.RunOptions = {
        "policy": run.policy,
        "instructions": run.instructions,
        "up_to_seq": run.up_to_seq,
        "stages": run.only_stages,
    }
    return _request_run(run.session_id, user_pk=user_pk, **options)


def _request_run(
    session_id: UUID, *, user_pk: Any, **options: Unpack[queue.RunOptions]
) -> CompactionRun:
    allowance.use_allowance(session_id, user_pk=user_pk)
    return engine.request_run(session_id, trigger="manual", **options)
