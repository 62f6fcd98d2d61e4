"""How a run ends, and how its start is told: each in one transaction that only the worker holding the run can commit."""

import logging
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from compaction import backends, leases
from compaction.core.pipeline import Outcome
from compaction.core.transcript import Transcript
from compaction.models import CompactionRun, SessionState, state_of
from compaction.situation import Situation

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 30
LONGEST_WAIT_SECONDS = 3600
ALMOST_NOTHING = 0.05  # of the threshold; a run that gains less was in vain

Event = tuple[str, dict[str, Any]]


def started(run: CompactionRun, *, messages: int, force: bool) -> None:
    """Tell that a summary is being written: once a run, however often it is claimed. Raises Lost."""
    if run.announced:
        return
    with transaction.atomic():
        _tell(run, ("compaction.started", {"run": str(run.pk), "messages_count": messages, "force": force}))
        if not leases.mine(run).filter(announced=False).update(announced=True):
            raise leases.Lost
    run.announced = True


def applied(run: CompactionRun, situation: Situation, transcript: Transcript, outcome: Outcome) -> None:
    """Install the outcome and record it, both or neither. Raises Stale and Lost; then nothing has changed."""
    with transaction.atomic():
        version = backends.get().install(run.session_id, transcript, outcome, run=str(run.pk))
        _close(
            run,
            CompactionRun.Status.APPLIED,
            stages_used=list(outcome.stages_used),
            tokens_before=outcome.tokens_before,
            tokens_after=outcome.tokens_after,
            messages_compacted=outcome.messages_compacted,
            boundary_before=situation.subject.boundary_seq,
            boundary_after=outcome.boundary_seq,
            version_before=transcript.version,
            version_after=version,
            summary_before=transcript.summary,
            summary_after=outcome.summary,
            edits=[{"seq": edit.seq, "kind": edit.kind, "replacement": edit.replacement} for edit in outcome.edits],
        )
        _learn_success(run, situation, outcome)
        _tell(run, ("compaction.applied", _applied_event(run)))
    logger.info("compaction run %s applied: %s to %s tokens", run.pk, outcome.tokens_before, outcome.tokens_after)


def skipped(run: CompactionRun, reason: str, *, tokens: int | None = None) -> None:
    """Nothing was done, and this is why. Raises Lost."""
    with transaction.atomic():
        _tell(run, ("compaction.skipped", {"run": str(run.pk), "reason": reason}))
        _close(run, CompactionRun.Status.SKIPPED, reason=reason, tokens_before=tokens, tokens_after=tokens)


def failed(run: CompactionRun, reason: str, situation: Situation | None, *, tokens: int | None = None) -> None:
    """Nothing is stored. Where the context is over its threshold, requests are trimmed from now on, and the user is told. Raises Lost.

    FEAT-011, Failure Handling Rules. The next automatic run waits, longer after each failure.
    """
    trims = bool(situation and situation.budget and situation.subject.automatic and situation.budget.over(tokens or 0))
    events: list[Event] = [("compaction.failed", {"run": str(run.pk), "reason": reason})]
    if trims and situation and not _told_while_it_ran(run):
        events.append(("context.trimmed", {"notice": situation.policy.fallback.notice, "run": str(run.pk)}))
    with transaction.atomic():
        _tell(run, *events)
        status = CompactionRun.Status.FELL_BACK if trims else CompactionRun.Status.FAILED
        _close(run, status, error=reason, reason=reason, tokens_before=tokens, tokens_after=tokens)
        _learn_failure(run, trims=trims)
    logger.warning("compaction run %s of session %s failed: %s", run.pk, run.session_id, reason)


def _told_while_it_ran(run: CompactionRun) -> bool:
    """Whether a request that did not wait for this run was trimmed, and the user told of it: what fails now is no news."""
    state = state_of(run.session_id)
    return state.trimming and not state.failures


def trimmed(situation: Situation) -> None:
    """Tell the user, once until the next success, that requests are trimmed without a run having failed."""
    session_id = situation.subject.session_id
    with transaction.atomic():
        backends.get().announce(session_id, ("context.trimmed", {"notice": situation.policy.fallback.notice}))
        SessionState.objects.update_or_create(session_id=session_id, defaults={"trimming": True})


def forgive(session_id: Any) -> None:
    """A run asked for by hand: what earlier runs taught no longer holds automatic ones back."""
    SessionState.objects.filter(pk=session_id).update(failures=0, not_before=None, fruitless=0, learned_for="", learned_window=None)


def _close(run: CompactionRun, status: str, **fields: Any) -> None:
    run.status, run.finished_at, run.lease_until = status, timezone.now(), None
    for name, value in fields.items():
        setattr(run, name, value)
    if not leases.mine(run).update(status=status, finished_at=run.finished_at, lease_until=None, **fields):
        raise leases.Lost


def _tell(run: CompactionRun, *events: Event) -> None:
    """Before the run's row is written: session, run, state is the order in which all of us lock."""
    backends.get().announce(run.session_id, *events)


def _applied_event(run: CompactionRun) -> dict[str, Any]:
    fields = ("tokens_saved", "messages_compacted", "tokens_before", "tokens_after", "duration_ms")
    model = CompactionRun.objects.values_list("model", flat=True).get(pk=run.pk)
    return {"run": str(run.pk), "model": model} | {name: getattr(run, name) for name in fields}


def _learn_success(run: CompactionRun, situation: Situation, outcome: Outcome) -> None:
    threshold = situation.budget.threshold if situation.budget else 0
    in_vain = outcome.tokens_before - outcome.tokens_after < ALMOST_NOTHING * threshold
    state = state_of(run.session_id)
    state.failures, state.not_before, state.trimming = 0, None, False
    state.fruitless = state.fruitless + 1 if in_vain and run.trigger != CompactionRun.Trigger.MANUAL else 0
    state.save()


def _learn_failure(run: CompactionRun, *, trims: bool) -> None:
    state = state_of(run.session_id)
    wait = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(state.failures, 10))
    state.failures += 1
    state.not_before = timezone.now() + timedelta(seconds=wait)
    state.trimming = state.trimming or trims
    state.save()
