"""One claimed run, worked through: load, propose, install; and whatever happens, an ending."""

import logging
from functools import partial

from django.db import DatabaseError

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import Stale
from compaction.core import outcome as core_outcome
from compaction.core import pipeline
from compaction.core.budget import Budget
from compaction.core.knobs import PolicyError
from compaction.core.stages import base
from compaction.core.transcript import Transcript
from compaction.models import CompactionRun
from compaction.requests import attachments
from compaction.runs import leases, lifecycle
from compaction.sizing import session_context
from compaction.sizing.session_context import Situation
from compaction.summaries.summarizer import Summarizer

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger
LOADS = 2  # a context that changed under a run is loaded once more


def work(run: CompactionRun) -> None:
    """Bring a claimed run to its end. Raises Lost, and DatabaseError when not even the end can be written.

    Broad on purpose: whatever goes wrong with a run, the run says so, and the conversation goes on.
    """
    if leases.exhausted(run):
        now = session_context.of(run.session_id)
        tokens = session_context.quick_measure(now).tokens if now else None
        return lifecycle.failed(
            run, f"Its workers died {run.attempts - 1} times.", now, tokens=tokens
        )
    try:
        _conclude(run)
    except (leases.Lost, DatabaseError):
        raise
    except Exception as error:
        if not leases.mine(
            run
        ).exists():  # its session was deleted under it, or another worker has it
            raise leases.Lost from error
        logger.exception("compaction run %s crashed", run.pk)
        lifecycle.failed(run, f"{type(error).__name__}: {error}", None)


def propose(
    run: CompactionRun, now: Situation, summarize: base.Summarize | None = None
) -> tuple[Transcript, core_outcome.Outcome]:
    """What the run's policy makes of the context as it is now; nothing is installed. Without `summarize` the session's model writes."""
    backend = backend_registry.get()
    transcript = session_context.recounted(
        backend.load(now.subject, fit=partial(attachments.fitted, now)), now.policy
    )
    measured = session_context.full_measure(now, transcript, backend.last_usage(now.subject))
    outcome = pipeline.run(
        transcript,
        now.policy,
        _budget(run, now),
        measured,
        summarize or Summarizer(run, now, measured.scale),
        instructions=run.instructions,
        up_to_seq=run.up_to_seq,
        only_stages=run.only_stages,
        force=run.forced,
    )
    return transcript, outcome


def refusal(run: CompactionRun, now: Situation | None) -> str:
    """Why a run that was asked for should not happen, or no longer; empty when nothing speaks against it."""
    if now is None:  # a session that is gone has no run to install
        return ""
    if run.trigger == Trigger.MANUAL:
        return (
            ""
            if Trigger.MANUAL in now.policy.trigger.phases
            else f"The policy {now.policy_name} allows no runs by hand."
        )
    if not now.subject.automatic:
        return "Automatic compaction is off for this session."
    if run.trigger == Trigger.AFTER_RESPONSE and now.subject.held:
        return "The context was rewound; it is compacted again when it outgrows the window, or by hand."
    return ""


def _conclude(run: CompactionRun) -> None:
    try:
        policy = run.policy, policies.from_snapshot(run.policy_snapshot)
    except PolicyError as error:
        return lifecycle.failed(run, str(error), None)
    for _ in range(LOADS):
        now = session_context.of(run.session_id, policy=policy)
        if now is None or (objection := refusal(run, now)):
            return lifecycle.skipped(run, "The session is gone." if now is None else objection)
        transcript, outcome = propose(run, now)
        if outcome.status == "failed":
            return lifecycle.failed(run, outcome.reason, now, tokens=outcome.tokens_before)
        if outcome.status == "skipped":
            return lifecycle.skipped(run, outcome.reason, tokens=outcome.tokens_before)
        if changed_mind := refusal(run, session_context.of(run.session_id, policy=policy)):
            return lifecycle.skipped(run, changed_mind, tokens=outcome.tokens_before)
        try:
            return lifecycle.applied(run, now, transcript, outcome)
        except Stale:
            logger.info("the context of session %s changed under run %s", run.session_id, run.pk)
    lifecycle.skipped(
        run, "The context changed while the summary was written, and so it did the second time."
    )


def _budget(run: CompactionRun, now: Situation) -> Budget | None:
    return (
        now.budget.recovering() if now.budget and run.trigger == Trigger.ON_OVERFLOW else now.budget
    )
