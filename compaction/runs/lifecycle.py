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
from compaction.models import CompactionRun, SessionState, state_of
from compaction.runs import leases
from compaction.sizing.session_context import Situation
from compaction.summaries import state as summary_state

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 30
LONGEST_WAIT_SECONDS = 3600
ALMOST_NOTHING = 0.05  # of the threshold; a run that gains less was in vain

Event = tuple[str, dict[str, Any]]


def started(run: CompactionRun, *, messages: int, force: bool, targets: int | None = None) -> None:
    """Tell that context is being compacted: once a run, however often it is claimed, when a summary is begun, or else before the end
    of a run that did its work without one. `targets`: how many messages are changed, where that is not `messages`. Raises Lost.
    """
    if run.announced:
        return
    told = {
        "run": str(run.pk),
        "messages_count": messages,
        "force": force,
        "targets": messages if targets is None else targets,
    }
    with transaction.atomic():
        _tell(run, ("compaction.started", told))
        if not leases.mine(run).filter(announced=False).update(announced=True):
            raise leases.Lost
    run.announced = True


def applied(
    run: CompactionRun, situation: Situation, transcript: Transcript, outcome: Outcome
) -> None:
    """Install the outcome and record it, all or nothing. Raises Stale and Lost; then nothing has changed.

    Where other stages made room although no summary came, the run says why, and the next automatic one waits as after a failure.
    """
    announced = run.announced
    try:
        with transaction.atomic():
            started(
                run,
                messages=outcome.messages_compacted,
                force=run.forced,
                targets=len(outcome.targets),
            )
            version = _installed(run, situation, transcript, outcome)
            _close(
                run,
                CompactionRun.Status.APPLIED,
                reason=outcome.summary_failed,
                error=outcome.summary_failed,
                boundary_before=situation.subject.boundary_seq,
                version_before=transcript.version,
                version_after=version,
                summary_before=transcript.summary,
                summary_after=outcome.summary,
                state_after=run.state_after,
                **record(outcome),
            )
            _learn_success(run, situation, outcome)
            _tell(run, *_applied_events(run, situation, outcome))
    except BaseException:
        run.announced = announced
        raise
    logger.info(
        "compaction run %s applied: %s to %s tokens",
        run.pk,
        outcome.tokens_before,
        outcome.tokens_after,
    )


def _installed(
    run: CompactionRun, situation: Situation, transcript: Transcript, outcome: Outcome
) -> int:
    """What the model sees from now on, and the structured state that goes with it."""
    working = (
        summary_state.restored(run.state_after)
        if run.state_after
        else summary_state.read(run.session_id)
    )
    version = backend_registry.get().install(
        run.session_id,
        transcript,
        outcome,
        run=str(run.pk),
        background=summary_state.background(working, situation.budget),
        placement=placement(situation.policy, transcript, outcome),
    )
    summary_state.install(run)
    return version


def placement(policy: Policy, transcript: Transcript, outcome: Outcome) -> dict[str, Any]:
    """Where the summary stands and between which words. The nudge goes with a summary; that of a failure says that none was written."""
    nudge = policy.inject.nudge if outcome.summary else ""
    words = {
        "place": policy.inject.place,
        "heading": policy.inject.heading,
        "nudge": policy.inject.failure_nudge if outcome.summary_failed else nudge,
        "marker": outcome.marker,
        "after_seq": transcript.entries[-1].seq if transcript.entries else None,
    }
    return {name: value for name, value in words.items() if value}


def record(outcome: Outcome) -> dict[str, Any]:
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


def skipped(run: CompactionRun, reason: str, *, tokens: int | None = None) -> None:
    """Nothing was done, and this is why. Raises Lost."""
    with transaction.atomic():
        _tell(run, ("compaction.skipped", {"run": str(run.pk), "reason": reason}))
        _close(
            run,
            CompactionRun.Status.SKIPPED,
            reason=reason,
            tokens_before=tokens,
            tokens_after=tokens,
        )


def failed(
    run: CompactionRun, reason: str, situation: Situation | None, *, tokens: int | None = None
) -> None:
    """Nothing is stored. Where the context is over its threshold, requests are trimmed from now on, and the user is told. Raises Lost.

    FEAT-011, Failure Handling Rules. The next automatic run waits, longer after each failure.
    """
    trims = situation is not None and _falls_back(situation, tokens or 0)
    events: list[Event] = [("compaction.failed", {"run": str(run.pk), "reason": reason})]
    if trims and situation and situation.policy.fallback.notify and not _told_while_it_ran(run):
        events.append(
            ("context.trimmed", {"notice": situation.policy.fallback.notice, "run": str(run.pk)})
        )
    with transaction.atomic():
        _tell(run, *events)
        status = CompactionRun.Status.FELL_BACK if trims else CompactionRun.Status.FAILED
        _close(run, status, error=reason, reason=reason, tokens_before=tokens, tokens_after=tokens)
        _learn_failure(run, trims=trims)
    logger.warning("compaction run %s of session %s failed: %s", run.pk, run.session_id, reason)


def _falls_back(situation: Situation, tokens: int) -> bool:
    """Whether requests of so many tokens are trimmed from now on."""
    over = situation.budget is not None and situation.budget.over(tokens)
    return over and situation.subject.automatic and situation.policy.fallback.kind != "error"


def _told_while_it_ran(run: CompactionRun) -> bool:
    """Whether a request that did not wait for this run was trimmed, and the user told of it: what fails now is no news."""
    state = state_of(run.session_id)
    return state.trimming and not state.failures


def trimmed(situation: Situation) -> None:
    """Tell the user, once until the next success, that requests are trimmed without a run having failed; unless the policy is silent."""
    session_id, fallback = situation.subject.session_id, situation.policy.fallback
    with transaction.atomic():
        if fallback.notify:
            backend_registry.get().announce(
                session_id, ("context.trimmed", {"notice": fallback.notice})
            )
        SessionState.objects.update_or_create(session_id=session_id, defaults={"trimming": True})


def forgive(session_id: Any) -> None:
    """A run asked for by hand: what earlier runs taught no longer holds automatic ones back."""
    SessionState.objects.filter(pk=session_id).update(
        failures=0, not_before=None, fruitless=0, learned_for="", learned_window=None
    )


def _close(run: CompactionRun, status: str, **fields: Any) -> None:
    run.status, run.finished_at, run.lease_until = status, timezone.now(), None
    for name, value in fields.items():
        setattr(run, name, value)
    if not leases.mine(run).update(
        status=status, finished_at=run.finished_at, lease_until=None, **fields
    ):
        raise leases.Lost


def _tell(run: CompactionRun, *events: Event) -> None:
    """Before the run's row is written: session, run, state is the order in which all of us lock."""
    backend_registry.get().announce(run.session_id, *events)


def _applied_events(run: CompactionRun, situation: Situation, outcome: Outcome) -> list[Event]:
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
    told = {
        "run": str(run.pk),
        "model": model,
        "cost": None if cost is None else float(cost),
        "targets_count": len(run.targets),
    }
    events: list[Event] = [
        ("compaction.applied", told | {name: getattr(run, name) for name in fields})
    ]
    fallback = situation.policy.fallback
    if outcome.summary_failed and fallback.notify:
        events.append(("context.trimmed", {"notice": fallback.notice, "run": str(run.pk)}))
    return events


def _learn_success(run: CompactionRun, situation: Situation, outcome: Outcome) -> None:
    budget = situation.budget
    in_vain = outcome.tokens_before - outcome.tokens_after < ALMOST_NOTHING * (
        budget.threshold if budget else 0
    )
    state = state_of(run.session_id)
    state.fruitless = (
        state.fruitless + 1 if in_vain and run.trigger != CompactionRun.Trigger.MANUAL else 0
    )
    state.trimming = bool(outcome.summary_failed) and _falls_back(situation, outcome.tokens_after)
    if outcome.summary_failed:
        _wait_longer(state)
    else:
        state.failures, state.not_before = 0, None
    state.save()


def _learn_failure(run: CompactionRun, *, trims: bool) -> None:
    state = state_of(run.session_id)
    state.trimming = state.trimming or trims
    _wait_longer(state)
    state.save()


def _wait_longer(state: SessionState) -> None:
    """Until the next automatic run; twice as long after each failure in a row."""
    wait = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(state.failures, 10))
    state.failures += 1
    state.not_before = timezone.now() + timedelta(seconds=wait)
