"""How a run ends, and how its start is told: each in one transaction that only the worker holding the run can commit."""

import logging
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from compaction.backends import registry as backend_registry
from compaction.core.outcome import Outcome
from compaction.core.policy import Policy
from compaction.core.transcript import Transcript
from compaction.models import CompactionRun, SessionState, load_session_state
from compaction.runs import leases
from compaction.sizing.session_context import SessionContext
from compaction.summaries import state as summary_state

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 30
LONGEST_WAIT_SECONDS = 3600
MIN_GAIN_RATIO = 0.05  # of the threshold; a run that gains less was in vain

RunEvent = tuple[str, dict[str, Any]]


def announce_start(
    run: CompactionRun, *, message_count: int, force: bool, target_count: int | None = None
) -> None:
    """Tell that context is being compacted: once a run, however often it is claimed, when a summary is begun, or else before the end
    of a run that did its work without one. `targets`: how many messages are changed, where that is not `messages`. Raises Lost.
    """
    if run.announced:
        return
    payload = {
        "run": str(run.pk),
        "messages_count": message_count,
        "force": force,
        "targets": message_count if target_count is None else target_count,
    }
    with transaction.atomic():
        _announce_events(run, ("compaction.started", payload))
        if not leases.select_claimed_run(run).filter(announced=False).update(announced=True):
            raise leases.RunLeaseLost
    run.announced = True


def apply_run(
    run: CompactionRun, context: SessionContext, transcript: Transcript, outcome: Outcome
) -> None:
    """Install the outcome and record it, all or nothing. Raises Stale and Lost; then nothing has changed.

    Where other stages made room although no summary came, the run says why, and the next automatic one waits as after a failure.
    """
    was_announced = run.announced
    try:
        with transaction.atomic():
            announce_start(
                run,
                message_count=outcome.messages_compacted,
                force=run.is_forced,
                target_count=len(outcome.targets),
            )
            version = _install_outcome(run, context, transcript, outcome)
            _close_run(
                run,
                CompactionRun.Status.APPLIED,
                reason=outcome.summary_error,
                error=outcome.summary_error,
                boundary_before=context.facts.boundary_seq,
                version_before=transcript.version,
                version_after=version,
                summary_before=transcript.summary,
                summary_after=outcome.summary,
                state_after=run.state_after,
                **build_run_record(outcome),
            )
            _record_success(run, context, outcome)
            _announce_events(run, *_build_applied_events(run, context, outcome))
    except BaseException:
        run.announced = was_announced
        raise
    logger.info(
        "compaction run %s applied: %s to %s tokens",
        run.pk,
        outcome.tokens_before,
        outcome.tokens_after,
    )


def _install_outcome(
    run: CompactionRun, context: SessionContext, transcript: Transcript, outcome: Outcome
) -> int:
    """What the model sees from now on, and the structured state that goes with it."""
    structured_state = (
        summary_state.parse_structured_state(run.state_after)
        if run.state_after
        else summary_state.load_structured_state(run.session_id)
    )
    version = backend_registry.get_backend().install_outcome(
        run.session_id,
        transcript,
        outcome,
        run=str(run.pk),
        background=summary_state.render_background(structured_state, context.budget),
        placement=build_placement(context.policy, transcript, outcome),
    )
    summary_state.install_structured_state(run)
    return version


def build_placement(policy: Policy, transcript: Transcript, outcome: Outcome) -> dict[str, Any]:
    """Where the summary stands and between which words. The nudge goes with a summary; that of a failure says that none was written."""
    nudge = policy.inject.nudge if outcome.summary else ""
    placement_fields = {
        "place": policy.inject.place,
        "heading": policy.inject.heading,
        "nudge": policy.inject.failure_nudge if outcome.summary_error else nudge,
        "marker": outcome.marker,
        "after_seq": transcript.entries[-1].seq if transcript.entries else None,
    }
    return {name: value for name, value in placement_fields.items() if value}


def build_run_record(outcome: Outcome) -> dict[str, Any]:
    """What a run notes of an outcome, by its fields."""
    return {
        "stages_used": list(outcome.stages_used),
        "tokens_before": outcome.tokens_before,
        "tokens_after": outcome.tokens_after,
        "messages_compacted": outcome.messages_compacted,
        "boundary_after": outcome.boundary_seq,
        "edits": [asdict(edit) for edit in outcome.edits],
        "targets": [asdict(target) for target in outcome.targets],
    }


def skip_run(run: CompactionRun, reason: str, *, tokens: int | None = None) -> None:
    """Nothing was done, and this is why. Raises Lost."""
    with transaction.atomic():
        _announce_events(run, ("compaction.skipped", {"run": str(run.pk), "reason": reason}))
        _close_run(
            run,
            CompactionRun.Status.SKIPPED,
            reason=reason,
            tokens_before=tokens,
            tokens_after=tokens,
        )


def fail_run(
    run: CompactionRun, reason: str, context: SessionContext | None, *, tokens: int | None = None
) -> None:
    """Nothing is stored. Where the context is over its threshold, requests are trimmed from now on, and the user is told. Raises Lost.

    FEAT-011, Failure Handling Rules. The next automatic run waits, longer after each failure.
    """
    trims_requests = context is not None and _should_trim_requests(context, tokens or 0)
    events: list[RunEvent] = [("compaction.failed", {"run": str(run.pk), "reason": reason})]
    if (
        trims_requests
        and context
        and context.policy.fallback.notify
        and not _was_trimming_announced(run)
    ):
        events.append(
            ("context.trimmed", {"notice": context.policy.fallback.notice, "run": str(run.pk)})
        )
    with transaction.atomic():
        _announce_events(run, *events)
        status = CompactionRun.Status.FELL_BACK if trims_requests else CompactionRun.Status.FAILED
        _close_run(
            run, status, error=reason, reason=reason, tokens_before=tokens, tokens_after=tokens
        )
        _record_failure(run, trims_requests=trims_requests)
    logger.warning("compaction run %s of session %s failed: %s", run.pk, run.session_id, reason)


def _should_trim_requests(context: SessionContext, tokens: int) -> bool:
    """Whether requests of so many tokens are trimmed from now on."""
    is_over_threshold = context.budget is not None and context.budget.is_over(tokens)
    return (
        is_over_threshold and context.facts.is_automatic and context.policy.fallback.kind != "error"
    )


def _was_trimming_announced(run: CompactionRun) -> bool:
    """Whether a request that did not wait for this run was trimmed, and the user told of it: what fails now is no news."""
    session_state = load_session_state(run.session_id)
    return session_state.trimming and not session_state.failures


def announce_trimming(context: SessionContext) -> None:
    """Tell the user, once until the next success, that requests are trimmed without a run having failed; unless the policy is silent."""
    session_id, fallback = context.facts.session_id, context.policy.fallback
    with transaction.atomic():
        if fallback.notify:
            backend_registry.get_backend().announce_events(
                session_id, ("context.trimmed", {"notice": fallback.notice})
            )
        SessionState.objects.update_or_create(session_id=session_id, defaults={"trimming": True})


def reset_failures(session_id: Any) -> None:
    """A run asked for by hand: what earlier runs taught no longer holds automatic ones back."""
    SessionState.objects.filter(pk=session_id).update(
        failures=0, not_before=None, fruitless=0, learned_for="", learned_window=None
    )


def _close_run(run: CompactionRun, status: str, **fields: Any) -> None:
    run.status, run.finished_at, run.lease_until = status, timezone.now(), None
    for name, value in fields.items():
        setattr(run, name, value)
    if not leases.select_claimed_run(run).update(
        status=status, finished_at=run.finished_at, lease_until=None, **fields
    ):
        raise leases.RunLeaseLost


def _announce_events(run: CompactionRun, *events: RunEvent) -> None:
    """Before the run's row is written: session, run, state is the order in which all of us lock."""
    backend_registry.get_backend().announce_events(run.session_id, *events)


def _build_applied_events(
    run: CompactionRun, context: SessionContext, outcome: Outcome
) -> list[RunEvent]:
    """What was done; and where no summary came of it, what the user is told after every fallback."""
    fields = (
        "tokens_saved",
        "messages_compacted",
        "tokens_before",
        "tokens_after",
        "duration_ms",
        "stages_used",
        "reason",
    )
    model, cost = CompactionRun.objects.values_list("model", "cost").get(pk=run.pk)
    payload = {
        "run": str(run.pk),
        "model": model,
        "cost": None if cost is None else float(cost),
        "targets_count": len(run.targets),
    }
    events: list[RunEvent] = [
        ("compaction.applied", payload | {name: getattr(run, name) for name in fields})
    ]
    fallback = context.policy.fallback
    if outcome.summary_error and fallback.notify:
        events.append(("context.trimmed", {"notice": fallback.notice, "run": str(run.pk)}))
    return events


def _record_success(run: CompactionRun, context: SessionContext, outcome: Outcome) -> None:
    budget = context.budget
    is_fruitless = outcome.tokens_before - outcome.tokens_after < MIN_GAIN_RATIO * (
        budget.threshold if budget else 0
    )
    session_state = load_session_state(run.session_id)
    session_state.fruitless = (
        session_state.fruitless + 1
        if is_fruitless and run.trigger != CompactionRun.Trigger.MANUAL
        else 0
    )
    session_state.trimming = bool(outcome.summary_error) and _should_trim_requests(
        context, outcome.tokens_after
    )
    if outcome.summary_error:
        _extend_wait(session_state)
    else:
        session_state.failures, session_state.not_before = 0, None
    session_state.save()


def _record_failure(run: CompactionRun, *, trims_requests: bool) -> None:
    session_state = load_session_state(run.session_id)
    session_state.trimming = session_state.trimming or trims_requests
    _extend_wait(session_state)
    session_state.save()


def _extend_wait(session_state: SessionState) -> None:
    """Until the next automatic run; twice as long after each failure in a row."""
    wait_seconds = min(
        LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(session_state.failures, 10)
    )
    session_state.failures += 1
    session_state.not_before = timezone.now() + timedelta(seconds=wait_seconds)
