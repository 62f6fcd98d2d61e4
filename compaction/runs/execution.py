"""Execute one claimed run: load the context, propose an outcome, install it, or record why not."""

import logging
from functools import partial

from django.db import DatabaseError

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import StaleTranscript
from compaction.core import pipeline
from compaction.core.budget import Budget
from compaction.core.knobs import PolicyError
from compaction.core.outcome import Outcome
from compaction.core.policy import Policy
from compaction.core.stages.base import Summarize
from compaction.core.transcript import Transcript
from compaction.models import CompactionRun
from compaction.requests import attachments
from compaction.runs import leases, lifecycle
from compaction.sizing import request_size, session_context
from compaction.sizing.session_context import SessionContext
from compaction.summaries.summarizer import Summarizer

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger
MAX_LOADS = 2  # a context that changes during a run is loaded once more


def process_run(run: CompactionRun) -> None:
    """Bring a claimed run to its end, whatever happens.

    An error of any other kind ends the run as failed, so that the conversation goes on. Raises
    RunLeaseLost, and DatabaseError when not even the end can be written.
    """
    if leases.has_exhausted_attempts(run):
        _fail_exhausted_run(run)
        return
    try:
        _compact_context(run)
    except (leases.RunLeaseLost, DatabaseError):
        raise
    except Exception as error:
        # Deleting the session deletes the run as well, and then every kind of error can follow.
        # Without the claim there is no run to end, so this is a lost run and not a failed one.
        if not leases.select_claimed_run(run).exists():
            raise leases.RunLeaseLost from error
        logger.exception("compaction run %s crashed", run.pk)
        lifecycle.fail_run(run, f"{type(error).__name__}: {error}", None)


def propose_outcome(
    run: CompactionRun, context: SessionContext, summarize: Summarize | None = None
) -> tuple[Transcript, Outcome]:
    """Return the current transcript and what the run's policy makes of it. Nothing is installed.

    Without `summarize` the session's summary model writes the summary.
    """
    backend = backend_registry.get_backend()
    stored_transcript = backend.load_transcript(
        context.facts, fit_request=partial(attachments.fit_attachments, context)
    )
    transcript = request_size.drop_foreign_counts(stored_transcript, context.policy)
    measurement = request_size.measure_transcript(
        context, transcript, backend.load_last_usage(context.facts)
    )
    outcome = pipeline.run(
        transcript,
        context.policy,
        _choose_budget(run, context),
        measurement,
        summarize or _build_summarizer(run, context, measurement.token_ratio),
        instructions=run.instructions,
        up_to_seq=run.up_to_seq,
        only_stages=run.only_stages,
        force=run.is_forced,
    )
    return transcript, outcome


def find_objection(run: CompactionRun, context: SessionContext) -> str:
    """Return why a requested run must not happen, or no longer; an empty text if nothing does."""
    if run.trigger == Trigger.MANUAL:
        if Trigger.MANUAL in context.policy.trigger.phases:
            return ""
        return f"The policy {context.policy_name} allows no runs by hand."
    if not context.facts.is_automatic:
        return "Automatic compaction is off for this session."
    if run.trigger == Trigger.AFTER_RESPONSE and context.facts.is_rewound:
        return (
            "The context was rewound; it is compacted again when it outgrows the window, or by "
            "hand."
        )
    return ""


def _fail_exhausted_run(run: CompactionRun) -> None:
    context = session_context.load_session_context(run.session_id)
    tokens = request_size.measure_next_request(context).tokens if context else None
    reason = f"Its workers died {run.attempts - 1} times."
    lifecycle.fail_run(run, reason, context, tokens=tokens)


def _compact_context(run: CompactionRun) -> None:
    try:
        policy = policies.parse_policy_snapshot(run.policy_snapshot)
    except PolicyError as error:
        lifecycle.fail_run(run, str(error), None)
        return
    for _ in range(MAX_LOADS):
        if _try_to_compact(run, policy):
            return
    lifecycle.skip_run(
        run, "The context changed while the summary was written, and so it did the second time."
    )


def _try_to_compact(run: CompactionRun, policy: Policy) -> bool:
    """Bring the run to its end. Return False when the context changed under it, without an end."""
    named_policy = (run.policy, policy)
    context = session_context.load_session_context(run.session_id, policy=named_policy)
    if context is None:
        lifecycle.skip_run(run, "The session is gone.")
        return True
    if objection := find_objection(run, context):
        lifecycle.skip_run(run, objection)
        return True
    transcript, outcome = propose_outcome(run, context)
    if outcome.status == "failed":
        lifecycle.fail_run(run, outcome.reason, context, tokens=outcome.tokens_before)
        return True
    if outcome.status == "skipped":
        lifecycle.skip_run(run, outcome.reason, tokens=outcome.tokens_before)
        return True
    # A summary takes seconds to minutes, in which the user may have switched compaction off. A
    # session that is gone by now has no run any more, and installing notices that.
    latest_context = session_context.load_session_context(run.session_id, policy=named_policy)
    if latest_context and (objection := find_objection(run, latest_context)):
        lifecycle.skip_run(run, objection, tokens=outcome.tokens_before)
        return True
    try:
        lifecycle.apply_run(run, context, transcript, outcome)
    except StaleTranscript:
        logger.info("the context of session %s changed under run %s", run.session_id, run.pk)
        return False
    return True


def _build_summarizer(
    run: CompactionRun, context: SessionContext, token_ratio: float
) -> Summarizer:
    # The summarizer writes text and knows nothing of runs' states and leases: what it needs of
    # them are these two functions.
    return Summarizer(
        run,
        context,
        token_ratio,
        announce_start=partial(lifecycle.announce_start, run, force=run.is_forced),
        wait=partial(leases.wait_while_claimed, run),
    )


def _choose_budget(run: CompactionRun, context: SessionContext) -> Budget | None:
    if context.budget and run.trigger == Trigger.ON_OVERFLOW:
        return context.budget.reduce_for_recovery()
    return context.budget
