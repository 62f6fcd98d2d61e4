"""What the page of a compaction run shows."""

from contextlib import suppress
from typing import TYPE_CHECKING

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from compaction.admin.calls import render_calls
from compaction.admin.differences import render_difference
from compaction.admin.rendering import render_preformatted, render_table
from compaction.backends import registry as backend_registry
from compaction.core.state import render_state
from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.summaries import state as summary_state

if TYPE_CHECKING:
    _Page = admin.ModelAdmin
else:
    _Page = object

Status = CompactionRun.Status
# The acts with a button on the page, with the runs that have it.
BUTTONS = {
    "cancel": ("Cancel", OPEN_STATUSES),
    "requeue": ("Send to the queue again", OPEN_STATUSES),
    "retry": ("Retry", (Status.FAILED, Status.FELL_BACK, Status.SKIPPED, Status.REWOUND)),
    "compact_now": ("Compact again", (Status.APPLIED,)),
    "rewind_to_here": ("Rewind to here", (Status.APPLIED,)),
    "rewind_to_before": ("Rewind to before", (Status.APPLIED,)),
    "clear_summary": ("Clear summary", (Status.APPLIED,)),
    "verify": ("Verify", tuple(Status)),
}


class RunFields(_Page):
    """The fields of the page. Each is HTML or text; none can be edited."""

    @admin.display(description="act")
    def buttons(self, run: CompactionRun) -> SafeString:
        """Return buttons for what this person may do with the run now.

        They send what the list sends for one selected run, so rights and log are the same.
        """
        names = getattr(run, "act_names", ())
        rows = [
            (reverse("admin:compaction_compactionrun_changelist"), name, text)
            for name, (text, statuses) in BUTTONS.items()
            if name in names and run.status in statuses
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
        label = backend_registry.get_backend().name_session(run.session_id)
        model = apps.get_model(settings.COMPACTION["SESSION_MODEL"])
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        links = [(reverse("admin:compaction_session_timeline", args=[run.session_id]), "Timeline")]
        with suppress(NoReverseMatch):  # a host need not show its conversations in the admin
            links.append((reverse(name, args=[run.session_id]), "Session"))
        if label and label.chat_url:
            links.append((label.chat_url, "Chat"))
        return format_html(
            "{}{} · {}",
            label.title if label else run.session_id,
            f" ({label.owner})" if label and label.owner else "",
            format_html_join(" · ", '<a href="{}">{}</a>', links),
        )

    @admin.display(description="summary, with what went and what came")
    def summaries(self, run: CompactionRun) -> SafeString | str:
        """Return the summary after the run, compared with that before it."""
        if run.summary_after is None and run.summary_before is None:
            return "none"
        return render_difference(run.summary_before or "", run.summary_after or "")

    @admin.display(description="tokens")
    def tokens(self, run: CompactionRun) -> str:
        """Return the tokens of the whole next request before and after the run."""
        if run.tokens_saved is None:
            return "not known"
        return f"{run.tokens_before:,} → {run.tokens_after:,} ({run.tokens_saved:,} saved)"

    @admin.display(description="calls")
    def call_tree(self, run: CompactionRun) -> SafeString | str:
        """Return what was asked of the model, as a tree."""
        return render_calls(run)

    @admin.display(description="cost")
    def total_cost(self, run: CompactionRun) -> str:
        """Return what the run's calls cost, in the currency of the prices."""
        if run.cost is None:
            return "unknown" if run.provider_calls else "nothing"
        label = backend_registry.get_backend().name_session(run.session_id)
        return f"{run.cost} {label.currency if label else ''}".strip()

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
            rows.append((*cells, render_preformatted(replacements.get(target["seq"], ""))))
        return render_table((*columns, "replacement"), rows)

    @admin.display(description="after the run")
    def state_after_run(self, run: CompactionRun) -> SafeString:
        """Return the structured state and memory as the model reads them."""
        structured_state = summary_state.parse_structured_state(run.state_after)
        return render_preformatted(render_state(structured_state) or "empty")
