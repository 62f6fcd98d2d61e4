"""Execute one claimed run: load the context, propose an outcome, install it, or record why not."""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from django.db import Error as DatabaseProblem

from chatcore.base.databases.outages import find_outage, store_patiently
from chatcore.context.revisions import StaleContext
from compaction import policies
from compaction.core import pipeline
from compaction.core.budget import Budget
from compaction.core.knobs import PolicyError
from compaction.core.outcome import Outcome
from compaction.core.policy import Policy
from compaction.core.summary import Summarize, SummaryFailed
from compaction.core.systems import describe_traits
from compaction.core.transcript import Transcript
from compaction.models import CompactionRun
from compaction.runs import history, leases, lifecycle, queue
from compaction.runs.lifecycle import RunProgress, trace_run
from compaction.sessions import built_requests, request_size, session_context, transcripts
from compaction.sessions.facts import estimate_file_growth
from compaction.sessions.session_context import SessionContext
from compaction.sessions.session_memory import (
    SessionMemory,
    find_memory_with_work,
    list_memories,
)
from compaction.summaries.call_log import ProviderBusy
from compaction.summaries.summarizer import Summarizer

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger
MAX_LOADS = 2  # a context that changes during a run is loaded once more
MAX_CLAIMS_OF_CHANGING_CONTEXT = 2  # one that goes on changing is tried once more, later


class JobFailed(Exception):
    """The run proposed no outcome; `reason` is one sentence for users.

    It may be tried again, unless `is_final`.
    """

    def __init__(
        self, reason: str, context: SessionContext, tokens: int, *, is_final: bool
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_final = is_final
        self.context = context
        self.tokens = tokens


class ContextKeepsChanging(Exception):
    """The context changed under each summary; the run is to be tried later."""


def process_run(run: CompactionRun) -> None:
    """Bring a claimed run to its end, whatever happens.

    An error of any other kind ends the run as failed, so that the conversation goes on. Raises
    RunLeaseLost, ContextKeepsChanging, ProviderBusy, and the database's error when not even the
    end can be written.
    """
    if leases.has_exhausted_attempts(run):
        _fail_exhausted_run(run)
        return
    try:
        with trace_run(run):
            _compact_context(run)
    except (leases.RunLeaseLost, ContextKeepsChanging, ProviderBusy):
        raise
    except Exception as error:
        if isinstance(error, DatabaseProblem) and find_outage(error):
            raise
        # Deleting the session deletes the run as well, and then every kind of error can follow.
        # Without the claim there is no run to end, so this is a lost run and not a failed one.
        if not leases.select_claimed_run(run).exists():
            raise leases.RunLeaseLost from error
        logger.exception("compaction run %s crashed", run.pk)
        _store_end(run, partial(lifecycle.fail_run, run, f"{type(error).__name__}: {error}", None))


def load_transcript(context: SessionContext) -> Transcript:
    """Return the current transcript, counted as the policy counts."""
    stored_transcript = transcripts.load_transcript(
        context.facts, fit_request=partial(built_requests.fit_attachments, context)
    )
    return request_size.recount_transcript(stored_transcript, context.policy)


def propose_outcome(
    run: CompactionRun,
    context: SessionContext,
    transcript: Transcript,
    summarize: Summarize | None = None,
) -> Outcome:
    """Return what the run's policy makes of a transcript. Nothing is installed.

    Without `summarize` the session's summary model writes the summary.
    """
    measurement = request_size.measure_transcript(context, transcript, context.facts.last_usage)
    growth_chars = estimate_file_growth(context.facts)
    for memory in list_memories():
        growth_chars += memory.estimate_growth(context, context.facts.last_seq)
    return pipeline.run(
        transcript,
        context.policy,
        _choose_budget(run, context),
        measurement,
        summarize or _build_summarizer(run, context, measurement.token_ratio),
        instructions=run.instructions,
        up_to_seq=run.up_to_seq,
        is_rewrite=run.from_version is not None,
        only_stages=run.only_stages,
        force=run.is_forced,
        growth_tokens=request_size.estimate_text_tokens(context, growth_chars),
    )


def find_objection(run: CompactionRun, context: SessionContext) -> str:
    """Return why a requested run must not happen, or no longer; an empty text if nothing does."""
    if run.trigger == Trigger.MANUAL:
        if Trigger.MANUAL in context.policy.trigger.phases:
            return queue.find_repeated_failure(run)
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
    reason = f"It was begun {run.attempts - 1} times."
    if run.deaths:
        reason = f"Its workers died {run.deaths} times."
    _store_end(run, partial(lifecycle.fail_run, run, reason, context, tokens=tokens))


def _compact_context(run: CompactionRun) -> None:
    try:
        policy = policies.parse_policy_snapshot(run.policy_snapshot)
    except PolicyError as error:
        _store_end(run, partial(lifecycle.fail_run, run, str(error), None))
        return
    traits = describe_traits(policy)
    retries = policy.summary.retries if traits.retries_run else 0
    for retry in range(1, retries + 2):
        try:
            _execute_job(run, policy)
            return
        except JobFailed as failure:
            if failure.is_final or retry > retries:
                _store_failure(run, failure)
                return
            logger.info("compaction run %s is begun again: %s", run.pk, failure.reason)
            leases.wait_while_claimed(run, traits.choose_wait(retry))


def _store_failure(run: CompactionRun, failure: JobFailed) -> None:
    reason, tokens = failure.reason, failure.tokens
    # A summary that was to be replaced is still in force, so nothing outgrows the window.
    context = failure.context if run.from_version is None else None
    _store_end(run, partial(lifecycle.fail_run, run, reason, context, tokens=tokens))


def _execute_job(run: CompactionRun, policy: Policy) -> None:
    """Bring the run to its end. Raises JobFailed, ContextKeepsChanging and ProviderBusy."""
    for _ in range(MAX_LOADS):
        if _try_to_compact(run, policy):
            return
    if run.attempts < MAX_CLAIMS_OF_CHANGING_CONTEXT:
        raise ContextKeepsChanging
    reason = "The context changed each time while the summary was written."
    _store_end(run, partial(lifecycle.skip_run, run, reason))


def _try_to_compact(run: CompactionRun, policy: Policy) -> bool:
    """Bring the run to its end. Return False when the context changed under it, without an end.

    Raises JobFailed.
    """
    named_policy = (run.policy, policy)
    context = session_context.load_session_context(run.session_id, policy=named_policy)
    if context is None:
        _store_end(run, partial(lifecycle.skip_run, run, "The session is gone."))
        return True
    if objection := find_objection(run, context):
        _store_end(run, partial(lifecycle.skip_run, run, objection))
        return True
    for memory in list_memories():
        memory.read_messages(context, reads_all=True)
    with history.go_back_to_read(run):
        context = session_context.load_session_context(run.session_id, policy=named_policy)
        if context is None:
            raise leases.RunLeaseLost  # deleted in this moment, and its runs with it
        transcript = load_transcript(context)
    outcome = propose_outcome(run, context, transcript)
    if outcome.status == "failed":
        raise JobFailed(outcome.reason, context, outcome.tokens_before, is_final=outcome.is_final)
    if outcome.status == "skipped" and (busy_memory := find_memory_with_work(context)):
        _work_beside(run, context, busy_memory, outcome.tokens_before)
        return True
    try:
        _store_end(run, partial(_install_outcome, run, context, transcript, outcome))
    except StaleContext:
        logger.info("the context of session %s changed under run %s", run.session_id, run.pk)
        return False
    return True


def _work_beside(
    run: CompactionRun, context: SessionContext, memory: SessionMemory, tokens: int
) -> None:
    """Do what an app has to do although there is nothing to compact. Raises JobFailed."""
    summarizer = _build_summarizer(run, context, token_ratio=1.0)
    try:
        write_end = memory.work(run, context, summarizer, tokens=tokens)
    except SummaryFailed as failure:
        raise JobFailed(failure.reason, context, tokens, is_final=failure.is_final) from None
    _store_end(run, write_end)


def _install_outcome(
    run: CompactionRun, context: SessionContext, transcript: Transcript, outcome: Outcome
) -> None:
    """Install the outcome, or skip the run if there is nothing to install, or no longer a reason.

    Raises StaleContext and RunLeaseLost.
    """
    if outcome.status == "skipped":
        lifecycle.skip_run(run, outcome.reason, tokens=outcome.tokens_before)
        return
    # A summary takes seconds to minutes, in which the user may have switched compaction off. A
    # session that is gone by now has no run any more, and installing notices that.
    named_policy = (context.policy_name, context.policy)
    latest_context = session_context.load_session_context(run.session_id, policy=named_policy)
    if latest_context and (objection := find_objection(run, latest_context)):
        lifecycle.skip_run(run, objection, tokens=outcome.tokens_before)
        return
    lifecycle.apply_run(run, context, transcript, outcome)


def _store_end(run: CompactionRun, write_end: Callable[[], None]) -> None:
    """Write the end of a run, which is one transaction; again while the database is away.

    What the model wrote is in memory only, and it was paid for.
    """
    is_retry = False

    def write_once() -> None:
        nonlocal is_retry
        # The commit may have been made although it was not confirmed.
        if is_retry and leases.is_ended(run):
            return
        is_retry = True
        write_end()

    store_patiently(write_once)


def _build_summarizer(
    run: CompactionRun, context: SessionContext, token_ratio: float
) -> Summarizer:
    policy = context.policy
    if describe_traits(policy).retries_run:
        policy = replace(policy, summary=replace(policy.summary, retries=0))
    # The summarizer writes text and knows nothing of runs' states and leases: what it needs of
    # them are these two functions.
    return Summarizer(
        run,
        replace(context, policy=policy),
        token_ratio,
        announce_start=partial(lifecycle.announce_start, run, force=run.is_forced),
        wait=partial(leases.wait_while_claimed, run),
        progress=RunProgress(run),
    )


def _choose_budget(run: CompactionRun, context: SessionContext) -> Budget | None:
    if context.budget and run.trigger == Trigger.ON_OVERFLOW:
        return context.budget.reduce_for_recovery()
    return context.budget
