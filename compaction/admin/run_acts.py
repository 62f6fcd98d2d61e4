"""What operators do with compaction runs: on the page of one, or with many in the list."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from compaction.backends import registry as backend_registry
from compaction.core.knobs import PolicyError
from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.policies import UnknownPolicy
from compaction.runs import allowance, cancellation, engine, queue
from compaction.sizing import session_context

if TYPE_CHECKING:
    _Page = admin.ModelAdmin
else:
    _Page = object


class NotPossible(Exception):
    """The run is in a state in which this cannot be done; the text says which."""


class RunActs(_Page):
    """Acts on runs. On the page of a run, its buttons send them as the list would."""

    @admin.action(description="Retry: request the same run again", permissions=["change"])
    def retry(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> Any:
        """Request the runs again by hand, with the same policy, instructions and model."""
        return self._apply_to_each(
            request,
            runs,
            lambda run: _request_again(run, user_pk=request.user.pk),
            "requested again",
        )

    @admin.action(description="Cancel: stop the run", permissions=["change"])
    def cancel(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> Any:
        """End open runs; their contexts stay as they are."""
        return self._apply_to_each(request, runs, _cancel, "stopped")

    @admin.action(description="Send to the queue again", permissions=["change"])
    def requeue(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> Any:
        """Notify the queue of waiting runs once more."""
        return self._apply_to_each(request, runs, _requeue, "sent to the queue again")

    @admin.action(
        description="Rewind to here: undo what came after the run", permissions=["change"]
    )
    def rewind_to_here(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> Any:
        """Show the model what it saw right after the run."""
        return self._apply_to_each(
            request, runs, engine.rewind_to_run, "what came after it was rewound"
        )

    @admin.action(description="Rewind to before the run", permissions=["change"])
    def rewind_to_before(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> Any:
        """Show the model what it saw before the run."""
        return self._apply_to_each(request, runs, engine.rewind_run, "rewound")

    @admin.action(description="Compact these sessions now", permissions=["change"])
    def compact_now(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> Any:
        """Request a run for each session under its own policy; a worker executes it."""
        return self._apply_to_each(
            request,
            runs,
            lambda run: _request_run(run.session_id, user_pk=request.user.pk),
            "requested",
        )

    @admin.action(description="Clear summary: send the full history again", permissions=["change"])
    def clear_summary(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> Any:
        """Forget the summaries of the runs' sessions. Messages and revisions stay."""
        return self._apply_to_each(
            request, runs, engine.forget_summary, "its session sends the full history again"
        )

    @admin.action(
        description="Verify: check all that is stored of the session", permissions=["view"]
    )
    def verify(self, request: HttpRequest, runs: QuerySet[CompactionRun]) -> Any:
        """Check every invariant of the runs' sessions, and show what does not hold."""
        for run in runs:
            violations = backend_registry.get_backend().find_violations(run.session_id)
            report = " ".join(violations) or "everything holds."
            self.message_user(
                request,
                f"{run.session_id}: {report}",
                messages.ERROR if violations else messages.SUCCESS,
            )
        return _go_back(request)

    def _apply_to_each(
        self,
        request: HttpRequest,
        runs: QuerySet[CompactionRun],
        operation: Callable[[CompactionRun], Any],
        success_text: str,
    ) -> HttpResponse | None:
        """Apply the operation, say what became of each run, and go back to the page of one."""
        for run in runs:
            try:
                operation(run)
            except (
                engine.NotRewindable,
                session_context.NoSuchSession,
                queue.RunConflict,
                allowance.TooManyRuns,
                allowance.BudgetSpent,
                NotPossible,
                UnknownPolicy,
                PolicyError,
            ) as error:
                self.message_user(request, f"{run.pk}: {error}", messages.ERROR)
            else:
                self.message_user(request, f"{run.pk}: {success_text}.", messages.SUCCESS)
        return _go_back(request)


def _request_again(run: CompactionRun, *, user_pk: Any) -> CompactionRun:
    options: queue.RunOptions = {
        "policy": run.policy,
        "instructions": run.instructions,
        "up_to_seq": run.up_to_seq,
        "stages": run.only_stages,
        "summary_model": run.summary_model,
    }
    return _request_run(run.session_id, user_pk=user_pk, **options)


def _request_run(
    session_id: UUID, *, user_pk: Any, **options: Unpack[queue.RunOptions]
) -> CompactionRun:
    allowance.use_allowance(session_id, user_pk=user_pk)
    return engine.request_run(session_id, trigger="manual", **options)


def _cancel(run: CompactionRun) -> None:
    if not cancellation.cancel_run(run):
        raise NotPossible("The run has ended already.")


def _requeue(run: CompactionRun) -> None:
    if run.status not in OPEN_STATUSES:
        raise NotPossible(f"The run is {run.status}; retry it instead.")
    if not engine.send_to_queue(run.pk):
        raise NotPossible("The queue cannot be reached now.")


def _go_back(request: HttpRequest) -> HttpResponse | None:
    """Return to the page of the run whose button was pressed; None leaves the list on show."""
    run_id = request.POST.get("on_page_of")
    if not run_id:
        return None
    return HttpResponseRedirect(reverse("admin:compaction_compactionrun_change", args=[run_id]))
