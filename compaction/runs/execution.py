"""One claimed run, worked through: load, propose, install; and whatever happens, an ending."""

import logging
from functools import partial

from django.db import DatabaseError

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import StaleTranscript
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
from compaction.sizing.session_context import SessionContext
from compaction.summaries.summarizer import Summarizer

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger
MAX_LOADS = 2  # a context that changed under a run is loaded once more


def process_run(run: CompactionRun) -> None:
    """Bring a claimed run to its end. Raises Lost, and DatabaseError when not even the end can be written.

    Broad on purpose: whatever goes wrong with a run, the run says so, and the conversation goes on.
    """
    if leases.has_exhausted_attempts(run):
        context = session_context.load_session_context(run.session_id)
        tokens = session_context.measure_next_request(context).tokens if context else None
        return lifecycle.fail_run(
            run, f"Its workers died {run.attempts - 1} times.", context, tokens=tokens
        )
    try:
        _compact_context(run)
    except (leases.RunLeaseLost, DatabaseError):
        raise
    except Exception as error:
        if not leases.select_claimed_run(
            run
        ).exists():  # its session was deleted under it, or another worker has it
            raise leases.RunLeaseLost from error
        logger.exception("compaction run %s crashed", run.pk)
        lifecycle.fail_run(run, f"{type(error).__name__}: {error}", None)


def propose_outcome(
    run: CompactionRun, context: SessionContext, summarize: base.Summarize | None = None
) -> tuple[Transcript, core_outcome.Outcome]:
    """What the run's policy makes of the context as it is now; nothing is installed. Without `summarize` the session's model writes."""
    backend = backend_registry.get_backend()
    transcript = session_context.drop_foreign_counts(
        backend.load_transcript(
            context.facts, fit_request=partial(attachments.fit_attachments, context)
        ),
        context.policy,
    )
    measurement = session_context.measure_transcript(
        context, transcript, backend.load_last_usage(context.facts)
    )
    outcome = pipeline.run(
        transcript,
        context.policy,
        _choose_budget(run, context),
        measurement,
        summarize or Summarizer(run, context, measurement.token_ratio),
        instructions=run.instructions,
        up_to_seq=run.up_to_seq,
        only_stages=run.only_stages,
        force=run.is_forced,
    )
    return transcript, outcome


def find_objection(run: CompactionRun, context: SessionContext | None) -> str:
    """Why a run that was asked for should not happen, or no longer; empty when nothing speaks against it."""
    if context is None:  # a session that is gone has no run to install
        return ""
    if run.trigger == Trigger.MANUAL:
        return (
            ""
            if Trigger.MANUAL in context.policy.trigger.phases
            else f"The policy {context.policy_name} allows no runs by hand."
        )
    if not context.facts.is_automatic:
        return "Automatic compaction is off for this session."
    if run.trigger == Trigger.AFTER_RESPONSE and context.facts.is_rewound:
        return "The context was rewound; it is compacted again when it outgrows the window, or by hand."
    return ""


def _compact_context(run: CompactionRun) -> None:
    try:
        policy = run.policy, policies.parse_policy_snapshot(run.policy_snapshot)
    except PolicyError as error:
        return lifecycle.fail_run(run, str(error), None)
    for _ in range(MAX_LOADS):
        context = session_context.load_session_context(run.session_id, policy=policy)
        if context is None or (objection := find_objection(run, context)):
            return lifecycle.skip_run(run, "The session is gone." if context is None else objection)
        transcript, outcome = propose_outcome(run, context)
        if outcome.status == "failed":
            return lifecycle.fail_run(run, outcome.reason, context, tokens=outcome.tokens_before)
        if outcome.status == "skipped":
            return lifecycle.skip_run(run, outcome.reason, tokens=outcome.tokens_before)
        if new_objection := find_objection(
            run, session_context.load_session_context(run.session_id, policy=policy)
        ):
            return lifecycle.skip_run(run, new_objection, tokens=outcome.tokens_before)
        try:
            return lifecycle.apply_run(run, context, transcript, outcome)
        except StaleTranscript:
            logger.info("the context of session %s changed under run %s", run.session_id, run.pk)
    lifecycle.skip_run(
        run, "The context changed while the summary was written, and so it did the second time."
    )


def _choose_budget(run: CompactionRun, context: SessionContext) -> Budget | None:
    return (
        context.budget.reduce_for_recovery()
        if context.budget and run.trigger == Trigger.ON_OVERFLOW
        else context.budget
    )
