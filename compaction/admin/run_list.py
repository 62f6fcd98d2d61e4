"""What the list of compaction runs shows, and its filters, each of which an index answers."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from compaction import policies
from compaction.models import CompactionRun, ModelCall

if TYPE_CHECKING:
    _Page = admin.ModelAdmin
else:
    _Page = object

WRONG_STATUSES = (CompactionRun.Status.FAILED, CompactionRun.Status.FELL_BACK)
ANY_REASON = "any"


class PolicyFilter(admin.SimpleListFilter):
    """The policies that exist. Asking the runs for theirs would read all of them."""

    title = "policy"
    parameter_name = "policy"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """Return the names of the policies."""
        return [(name, name) for name in policies.list_policies()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[CompactionRun]) -> Any:
        """Select the runs of the policy."""
        return queryset.filter(policy=self.value()) if self.value() else queryset


class WrongFilter(admin.SimpleListFilter):
    """Runs that failed or made do without a summary, by why the model's answers were refused."""

    title = "what went wrong"
    parameter_name = "wrong"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """Return the reasons."""
        return [(ANY_REASON, "failed or fell back"), *ModelCall.Refusal.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[CompactionRun]) -> Any:
        """Select the runs."""
        reason = self.value()
        if not reason:
            return queryset
        runs = queryset.filter(status__in=WRONG_STATUSES)
        if reason == ANY_REASON:
            return runs
        return runs.filter(Exists(ModelCall.objects.filter(run=OuterRef("pk"), refusal=reason)))


class RunColumns(_Page):
    """The columns of the list, besides those that are fields."""

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
        """Return the seconds from the first claim to the end."""
        return "" if run.duration_ms is None else f"{run.duration_ms / 1000:.1f}"
