"""The admin pages of compaction runs: what each did, and acts to retry, stop and rewind them.

On the page of a run, its buttons send the acts as the list would, so rights and log are the same.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import ClassVar, NamedTuple, Unpack

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatcore.admin.base import ChatcoreAdmin
from chatcore.projects.system_text import join_texts
from chatcore.sessions import verification
from compaction import policies
from compaction.admin import calls, timeline
from compaction.admin.base import find_session, render_difference, render_preformatted, render_table
from compaction.models import OPEN_STATUSES, CompactionRun, ModelCall
from compaction.runs import engine, queue, tasks
from compaction.sessions.session_memory import list_memories

Status = CompactionRun.Status
WRONG_STATUSES = (Status.FAILED, Status.FELL_BACK)
ANY_REASON = "any"


class PolicyFilter(admin.SimpleListFilter):
    """The policies that exist. Asking the runs for theirs would read all of them."""

    title = "policy"
    parameter_name = "policy"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [(name, name) for name in policies.list_policies()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[CompactionRun]
    ) -> QuerySet[CompactionRun]:
        return queryset.filter(policy=self.value()) if self.value() else queryset


class WrongFilter(admin.SimpleListFilter):
    """Runs that failed or made do without a summary, by why the model's answers were refused."""

    title = "what went wrong"
    parameter_name = "wrong"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        reasons = [(value, str(label)) for value, label in ModelCall.Refusal.choices]
        return [(ANY_REASON, "failed or fell back"), *reasons]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[CompactionRun]
    ) -> QuerySet[CompactionRun]:
        reason = self.value()
        if not reason:
            return queryset
        runs = queryset.filter(status__in=WRONG_STATUSES)
        if reason == ANY_REASON:
            return runs
        return runs.filter(Exists(ModelCall.objects.filter(run=OuterRef("pk"), refusal=reason)))


class NotPossible(Exception):
    """The run is in a state in which this cannot be done; the text says which."""


def _request_again(run: CompactionRun, *, user_pk: object) -> None:
    options: queue.RunOptions = {
        "policy": run.policy,
        "instructions": run.instructions,
        "up_to_seq": run.up_to_seq,
        "stages": run.only_stages,
        "summary_model": run.summary_model,
    }
    _request_run(run, user_pk=user_pk, **options)


def _request_run(
    run: CompactionRun, *, user_pk: object, **options: Unpack[queue.RunOptions]
) -> None:
    queue.use_allowance(run.session_id, user_pk=user_pk)
    engine.request_run(run.session_id, trigger="manual", **options)


def _cancel(run: CompactionRun, **_: object) -> None:
    if not engine.cancel_run(run):
        raise NotPossible("The run has ended already.")


def _requeue(run: CompactionRun, **_: object) -> None:
    if run.status not in OPEN_STATUSES:
        raise NotPossible(f"The run has ended: {run.get_status_display()}. Retry it instead.")
    if not tasks.send_run(run.pk):
        raise NotPossible("The queue cannot be reached now.")


def _verify(run: CompactionRun, **_: object) -> None:
    if violations := verification.check_session(run.session_id):
        raise NotPossible(" ".join(violations))


class Act(NamedTuple):
    """What staff may do with runs: in the list, and by a button on the page of one."""

    description: str
    """The button has what stands before the colon."""
    statuses: Collection[str]
    """The runs whose page has the button."""
    operate: Callable[..., object]
    """Takes the run and the key of the user. It may raise REFUSALS, NotRewindable, NotPossible."""
    result: str
    right: str = "change"


_WRONG = (Status.FAILED, Status.FELL_BACK, Status.SKIPPED, Status.REWOUND)
_APPLIED = (Status.APPLIED,)
ACTS = {
    "retry": Act("Retry: request the same run again", _WRONG, _request_again, "requested again"),
    "cancel": Act("Cancel: stop the run", OPEN_STATUSES, _cancel, "stopped"),
    "requeue": Act("Send to the queue again", OPEN_STATUSES, _requeue, "sent to the queue again"),
    "compact_now": Act(
        "Compact again: request a run of each session", _APPLIED, _request_run, "requested"
    ),
    "rewind_to_here": Act(
        "Rewind to here: undo what came after the run",
        _APPLIED,
        lambda run, **_: engine.rewind_to_run(run),
        "what came after it was rewound",
    ),
    "rewind_to_before": Act(
        "Rewind to before: undo the run too",
        _APPLIED,
        lambda run, **_: engine.rewind_run(run),
        "rewound",
    ),
    "clear_summary": Act(
        "Clear summary: send the full history again",
        _APPLIED,
        lambda run, **_: engine.forget_summary(run),
        "its session sends the full history again",
    ),
    "verify": Act(
        "Verify: check all that is stored of the session",
        tuple(Status),
        _verify,
        "everything holds",
        right="view",
    ),
}


def _build_action(name: str, act: Act) -> Callable[..., HttpResponse | None]:
    """Return an action of the list, which says what became of each run.

    From the page of a run it goes back to that page; None leaves the list on show.
    """

    @admin.action(description=act.description, permissions=[act.right])
    def apply(
        page: ChatcoreAdmin, request: HttpRequest, runs: QuerySet[CompactionRun]
    ) -> HttpResponse | None:
        for run in runs:
            try:
                act.operate(run, user_pk=request.user.pk)
            except (*timeline.REFUSALS, engine.NotRewindable, NotPossible) as error:
                page.message_user(request, f"{run.pk}: {error}", messages.ERROR)
            else:
                page.message_user(request, f"{run.pk}: {act.result}.", messages.SUCCESS)
        run_id = request.POST.get("on_page_of")
        if not run_id:
            return None
        return HttpResponseRedirect(reverse("admin:compaction_compactionrun_change", args=[run_id]))

    apply.__name__ = name
    return apply


@admin.register(CompactionRun)
class CompactionRunAdmin(ChatcoreAdmin):
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
    list_defer = (
        "policy_snapshot",
        "edits",
        "targets",
        "state_after",
        "verification",
    )
    list_filter = ("status", WrongFilter, "trigger", PolicyFilter, "created_at")
    sortable_by = ()
    search_fields = ("=id", "=session__id")
    actions = tuple(_build_action(name, act) for name, act in ACTS.items())
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
        ("What the model was asked", {"fields": ("call_tree",)}),
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
        css: ClassVar = {"all": ("chatcore/css/compaction_runs.css",)}

    def get_urls(self) -> list[URLPattern]:
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

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: runs are requested, not typed in."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: CompactionRun | None = None) -> bool:
        """Return whether runs may be acted on; the record of one is never changed by a form."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: CompactionRun | None = None) -> bool:
        """Return False: a record goes with its session, or when its time is over."""
        return False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> CompactionRun | None:
        """Return the run, with the names of the actions that this user may run."""
        run = super().get_object(request, object_id, from_field)
        if run is not None:
            run.act_names = [name for name in ACTS if name in self.get_actions(request)]
        return run

    # The columns of the list.

    @admin.display(description="session")
    def session_title(self, run: CompactionRun) -> SafeString:
        """Return the session's title with a link to its timeline."""
        address = reverse("admin:compaction_session_timeline", args=[run.session_id])
        return format_html('<a class="run-title" href="{}">{}</a>', address, run.session)

    @admin.display(description="status")
    def status_badge(self, run: CompactionRun) -> SafeString:
        """Return the status, in a color that says how it ended."""
        return format_html(
            '<span class="run-badge run-{}">{}</span>', run.status, run.get_status_display()
        )

    @admin.display(description="tokens")
    def shrinkage(self, run: CompactionRun) -> SafeString | str:
        """Return the tokens of the next request before and after the run, and what was left."""
        if run.tokens_before is None or run.tokens_after is None:
            return ""
        share = f"{run.tokens_after / run.tokens_before:.0%}" if run.tokens_before else ""
        return format_html(
            '<span class="run-size">{} → {} <span class="run-quiet">{}</span></span>',
            f"{run.tokens_before:,}",
            f"{run.tokens_after:,}",
            share,
        )

    @admin.display(description="seconds")
    def duration(self, run: CompactionRun) -> str:
        return "" if run.duration_ms is None else f"{run.duration_ms / 1000:.1f}"

    # The fields of the page.

    @admin.display(description="act")
    def buttons(self, run: CompactionRun) -> SafeString:
        """Return buttons for what this user may do with the run now.

        They send what the list sends for one selected run, so rights and log are the same.
        """
        names = getattr(run, "act_names", ())
        address = reverse("admin:compaction_compactionrun_changelist")
        rows = [
            (address, name, act.description.partition(":")[0])
            for name, act in ACTS.items()
            if name in names and run.status in act.statuses
        ]
        buttons = format_html_join(
            "",
            '<button formaction="{}" formmethod="post" formnovalidate name="action" value="{}">'
            "{}</button>",
            rows,
        )
        return format_html(
            '<div class="run-buttons">{0}<input type="hidden" name="_selected_action" value="{1}">'
            '<input type="hidden" name="index" value="0">'
            '<input type="hidden" name="on_page_of" value="{1}"></div>',
            buttons,
            run.pk,
        )

    @admin.display(description="session")
    def session_link(self, run: CompactionRun) -> SafeString:
        """Return the session's name and owner, with links to all that is stored of it."""
        session = find_session(run.session_id)
        links = [
            (reverse("admin:compaction_session_timeline", args=[run.session_id]), "Timeline"),
            (reverse("admin:chatcore_session_change", args=[run.session_id]), "Session"),
        ]
        if session:
            links.append((reverse("chat", args=[session.pk]), "Chat"))
        return format_html(
            "{}{} · {}",
            session or run.session_id,
            f" ({session.owner})" if session else "",
            format_html_join(" · ", '<a href="{}">{}</a>', links),
        )

    @admin.display(description="summary, with what went and what came")
    def summaries(self, run: CompactionRun) -> SafeString | str:
        """Return the summary after the run, compared with that before it."""
        before, after = run.summary_before, run.summary_after
        if before is None and after is None:
            return "none"
        return render_difference(before or "", after or "")

    @admin.display(description="tokens")
    def tokens(self, run: CompactionRun) -> str:
        """Return the tokens of the whole next request before and after the run."""
        if run.tokens_saved is None:
            return "not known"
        return f"{run.tokens_before:,} → {run.tokens_after:,} ({run.tokens_saved:,} saved)"

    @admin.display(description="calls")
    def call_tree(self, run: CompactionRun) -> SafeString | str:
        return calls.render_calls(run)

    @admin.display(description="cost")
    def total_cost(self, run: CompactionRun) -> str:
        """Return what the run's calls cost, in the currency of the prices."""
        if run.cost is None:
            return "unknown" if run.provider_calls else "nothing"
        return f"{run.cost} {settings.CHATCORE['CURRENCY']}"

    @admin.display(description="timeline")
    def timeline(self, run: CompactionRun) -> SafeString:
        steps = (
            ("requested", run.created_at),
            ("sent to the queue", run.enqueued_at),
            ("first claimed", run.started_at),
            ("lease until", run.lease_until),
            ("ended", run.finished_at),
        )
        lines = [(f"{moment:%Y-%m-%d %H:%M:%S}", name) for name, moment in steps if moment]
        return format_html_join("", "<div>{} — {}</div>", lines)

    @admin.display(description="summary checked")
    def summary_checks(self, run: CompactionRun) -> SafeString | str:
        """Return what the checks of the summary found, and what was done about it."""
        if not run.verification:
            return "not checked"
        findings = run.verification["findings"]
        if not findings:
            return "nothing was wrong"
        rows = [(item["check"], item["action"], item["text"]) for item in findings]
        return render_table(("check", "done", "text"), rows)

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
        """Return a table of the changed messages: their sizes, and the text that replaces each."""
        if not run.targets:
            return "none"
        replacements = {edit["seq"]: edit["replacement"] for edit in run.edits}
        columns = ("seq", "role", "tool", "method", "chars_before", "chars_after")
        rows = []
        for target in run.targets:
            cells = [target[name] for name in columns]
            rows.append((*cells, render_preformatted(replacements.get(target["seq"], ""))))
        return render_table((*columns, "replacement"), rows)

    @admin.display(description="after the run")
    def state_after_run(self, run: CompactionRun) -> SafeString:
        """Return the structured state and memory as the model reads them."""
        text = join_texts(memory.render_record(run.state_after) for memory in list_memories())
        return render_preformatted(text or "empty")
