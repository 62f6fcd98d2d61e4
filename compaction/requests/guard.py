"""Make a session's next request fit, and make room after a provider refused it."""

import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from chatcore.context.compactor import FittedRequest
from chatcore.models import Session
from chatcore.providers.base import Request
from chatcore.providers.errors import ContextBudgetExceeded, ContextOverflow
from compaction import policies
from compaction.core.estimate import estimate_transcript
from compaction.core.systems import TRIMMERS, describe_traits
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.models import OPEN_STATUSES, CompactionRun, SessionState, find_open_run
from compaction.requests.measured_request import (
    MeasuredRequest,
    build_oversize_refusal,
    log_request_decision,
    measure_request,
    remeasure_request,
)
from compaction.runs import engine, lifecycle
from compaction.runs.leases import is_resting
from compaction.sessions import built_requests, calibration, request_size, session_context
from compaction.sessions.answered import foresee_usage
from compaction.sessions.built_requests import (
    add_runtime_hint,
    append_system_text,
    keep_entries,
    rebuild_request,
)
from compaction.sessions.decision_log import log_decision
from compaction.sessions.facts import is_answering, load_last_model
from compaction.sessions.session_context import NoSuchSession, SessionContext

Trigger = CompactionRun.Trigger

# A run may stay queued for this many seconds before a turn that waits for it works on it itself.
QUEUE_PATIENCE_SECONDS = 2.0


def fit_request(session: Session, request: Request) -> FittedRequest:
    """Return a request that fits the session's context window.

    A request that is too large is compacted first, if the policy's phases allow it, and then
    trimmed if that was not enough. Raises ContextBudgetExceeded, before any call of a provider,
    if the newest message alone is larger than the window, or if the request is and the policy's
    fallback is an error.
    """
    context = session_context.load_session_context(session.pk)
    if context is None or context.automatic_mode == "off":
        return _build_complete_answer(session, request, context)
    measured_request = measure_request(context, request)
    # The run that was waited for may have changed the context, so the request is built again.
    if wait_for_open_run(measured_request):
        measured_request = remeasure_request(session, measured_request)
    if measured_request.is_over_window and doubt_learned_window(measured_request.context):
        request = add_runtime_hint(context, request)
        return FittedRequest(request=request, context_version=session.context_version)
    refuse_oversized_message(measured_request)
    trigger = choose_trigger(measured_request)
    if trigger and may_run_automatically(measured_request.context):
        log_request_decision(measured_request, "compact", trigger=trigger)
        engine.compact_now(session.pk, trigger=trigger)
        measured_request = remeasure_request(session, measured_request)
    # The hint is added last, because it is not part of what is measured.
    request_with_hint = add_runtime_hint(measured_request.context, measured_request.request)
    return apply_fallback(
        replace(measured_request, request=request_with_hint), session.context_version
    )


def doubt_learned_window(context: SessionContext) -> bool:
    """Return True once a day for a window that only refusals have shown: it is tried anew.

    If the longer request is refused, the window is learned again, and the turn is answered all the
    same; if it is answered, the window is forgotten.
    """
    is_learned = context.facts.model.window is None and context.model_calibration.window is not None
    if not is_learned or not context.model_calibration.is_window_doubtful:
        return False
    calibration.doubt_window(context.facts.model.name)
    return True


def preview_request(session: Session, request: Request) -> FittedRequest:
    """Return what `fit_request` would return now, if no run changed the context.

    Nothing is stored, no model is called, and a request that is too large raises nothing.
    """
    context = session_context.load_session_context(session.pk)
    if context is None or context.automatic_mode == "off":
        return _build_complete_answer(session, request, context)
    measured_request = measure_request(context, request)
    request_with_hint = add_runtime_hint(context, measured_request.request)
    return _build_answer(
        replace(measured_request, request=request_with_hint),
        select_remaining_entries(measured_request),
        session.context_version,
    )


def make_room_after_refusal(session: Session, request: Request, refusal: ContextOverflow) -> bool:
    """Make room after a provider refused `request`; return True if the next one will be smaller.

    The refusal's numbers are stored as true. The tools of `request` are kept, because a client may
    have added some.
    """
    context = session_context.load_session_context(session.pk)
    if context is None or not context.facts.is_automatic:
        return False
    rebuilt_request = rebuild_request(session, request)
    refused_request = measure_request(context, rebuilt_request)
    refused_entries = select_remaining_entries(refused_request)
    # The sizes are stored first: the run that follows plans its budget with them.
    learn_refusal_sizes(context, refused_entries, tokens=refusal.tokens, window=refusal.window)
    if _compact_after_refusal(refused_request, refusal):
        return True
    measured_request = remeasure_request(session, refused_request)
    remaining_entries = select_remaining_entries(measured_request)
    return count_sent_tokens(remaining_entries) < count_sent_tokens(refused_entries)


def estimate_next_request(session_id: UUID) -> int:
    """Return the tokens of the session's next request; 0 if the session is deleted."""
    context = session_context.load_session_context(session_id)
    if context is None:
        return 0
    return request_size.measure_next_request(context).tokens


def wait_for_open_run(measured_request: MeasuredRequest) -> bool:
    """Wait for the session's open run, if the policy says so; return True if there was one.

    The wait ends with the run, when the turn is canceled, or after `flow.lease_seconds`. No
    database connection is held meanwhile.
    """
    context = measured_request.context
    if not describe_traits(context.policy).waits_for_run or not measured_request.opens_turn:
        return False
    run = find_open_run(context.facts.session_id)
    if run is None or is_resting(run.pk):
        return False
    log_request_decision(measured_request, "wait")
    deadline = time.monotonic() + policies.read_flow(context.policy).lease_seconds

    def should_wait(run: CompactionRun) -> bool:
        is_open = run.status in OPEN_STATUSES and not is_resting(run.pk)
        return is_open and time.monotonic() < deadline and is_answering(context.facts)

    try:
        while should_wait(run):
            seconds_left = max(0.0, deadline - time.monotonic())
            run = engine.wait_for_run(
                run,
                seconds=min(seconds_left, QUEUE_PATIENCE_SECONDS),
                should_wait=lambda: is_answering(context.facts),
            )
            # No worker may have taken the run, for example because none is started. Then the turn
            # that waits for it does the work. If a worker has claimed it, this call changes nothing
            # and returns None.
            if should_wait(run):
                run = engine.execute_run(run.pk, obey_limits=True) or run
    except NoSuchSession:
        return False
    return True


def choose_trigger(measured_request: MeasuredRequest) -> str | None:
    """Return the reason to compact before sending; None if the request fits or no phase allows it.

    A request over the window would be refused, so a policy that compacts on overflow compacts here
    as well.
    """
    if not (measured_request.is_over_threshold or measured_request.is_over_window):
        return None
    facts = measured_request.context.facts
    phases = measured_request.context.policy.trigger.phases
    last_model = load_last_model(facts)
    if last_model not in ("", facts.model.name) and Trigger.ON_MODEL_CHANGE in phases:
        return Trigger.ON_MODEL_CHANGE
    if Trigger.BEFORE_REQUEST in phases:
        return Trigger.BEFORE_REQUEST
    if measured_request.is_over_window and Trigger.ON_OVERFLOW in phases:
        return Trigger.BEFORE_REQUEST
    return None


def may_run_automatically(context: SessionContext) -> bool:
    """Return False while a failure delays runs, and after two runs that gained almost nothing.

    Unlike after a response, a rewind does not hold a run back here: the request has to fit.
    """
    return not context.state.is_stopped and not context.state.is_waiting


def refuse_oversized_message(measured_request: MeasuredRequest) -> None:
    """Raise ContextBudgetExceeded if the newest message is larger than the window.

    Nothing else is refused because of an estimate: a provider may count fewer tokens than we do.
    A tool's result is not refused where the fallback shortens it.
    """
    shortens_results = measured_request.context.policy.fallback.kind != "error"
    can_shorten = shortens_results and not measured_request.opens_turn
    if measured_request.has_oversized_message and not can_shorten:
        log_request_decision(measured_request, "refuse")
        raise build_oversize_refusal(measured_request)


def learn_refusal_sizes(
    context: SessionContext,
    request_entries: Sequence[TranscriptEntry],
    *,
    tokens: int | None,
    window: int | None,
) -> None:
    """Store the true sizes that a refusal gave, for this session and for its model.

    A refusal without numbers still proves that the request had more tokens than the provider takes.
    One that names the registry's limit of a request teaches nothing about the window.
    """
    facts = context.facts
    if window == facts.model.max_input:
        window = None
    sent_transcript = Transcript(entries=tuple(request_entries))
    estimate = request_size.estimate_fixed_tokens(context) + estimate_transcript(
        sent_transcript, context.policy
    )
    true_window = 0
    if context.budget is not None:
        true_window = min(window or context.budget.window, context.budget.window)
    else:
        # The window is still unknown. Half of what was refused may fit.
        ratio = max(context.refusal_token_ratio, context.model_calibration.ratio)
        true_window = window or max(1, int(estimate * ratio) // 2)
    true_tokens = tokens or min(true_window, facts.model.max_input or true_window) + 1
    SessionState.objects.update_or_create(
        session_id=facts.session_id,
        defaults={
            "learned_for": session_context.build_learned_key(facts),
            "learned_scale": max(context.refusal_token_ratio, true_tokens / max(1, estimate)),
            "learned_window": true_window,
        },
    )


def _compact_after_refusal(refused_request: MeasuredRequest, refusal: ContextOverflow) -> bool:
    """Compact if the policy does so after an overflow; return True if it was applied."""
    context = refused_request.context
    may_compact = Trigger.ON_OVERFLOW in context.policy.trigger.phases
    may_compact = may_compact and may_run_automatically(context)
    log_decision(
        context,
        trigger=Trigger.ON_OVERFLOW,
        tokens=refusal.tokens or refused_request.measurement.tokens,
        action="compact" if may_compact else "held",
        force=may_compact,
        **refused_request.log_fields,
    )
    if not may_compact:
        return False
    run = engine.compact_now(context.facts.session_id, trigger=Trigger.ON_OVERFLOW)
    return run.status == CompactionRun.Status.APPLIED


def _build_complete_answer(
    session: Session, request: Request, context: SessionContext | None
) -> FittedRequest:
    """Return the request of a session that nothing is left out of but the ends of files."""
    if context is not None:
        fitted_request = built_requests.fit_attachments(context, request)
        request = add_runtime_hint(context, fitted_request)
    return FittedRequest(request=request, context_version=session.context_version)


def select_remaining_entries(measured_request: MeasuredRequest) -> Sequence[TranscriptEntry]:
    """Return the messages that would be sent: all of them, or those that the fallback leaves.

    The question of the running turn is always among them. Where it and the newest calls with their
    results are still too large, the results are shortened.
    """
    entries: Sequence[TranscriptEntry] = measured_request.transcript.entries
    budget, policy = measured_request.context.budget, measured_request.context.policy
    kind = policy.fallback.kind
    if budget is None or kind == "error" or not measured_request.is_too_large:
        return entries
    if kind in TRIMMERS:
        # What is left may still be too large; then its oldest messages go as well.
        limits = measured_request.build_trim_limits(budget.threshold)
        entries = TRIMMERS[kind].trim(entries, policy, **limits)
    return measured_request.drop_oldest(budget.threshold, entries)


def count_sent_tokens(entries: Sequence[TranscriptEntry]) -> int:
    """Return the estimated tokens of the messages that would be sent."""
    return sum(entry.tokens for entry in entries)


def apply_fallback(measured_request: MeasuredRequest, context_version: int) -> FittedRequest:
    """Return a request that is about to be sent, trimmed if it is too large.

    Raises ContextBudgetExceeded if the request is over the window and the policy's fallback is
    an error.
    """
    remaining_entries = select_remaining_entries(measured_request)
    if remaining_entries == measured_request.transcript.entries:
        fallback = measured_request.context.policy.fallback
        if measured_request.is_over_window and fallback.kind == "error":
            raise _build_overflow_refusal(measured_request)
        log_request_decision(measured_request, "none")
    else:
        log_request_decision(measured_request, "trim")
        # The user is notified once, not at every request of a session that stays too large.
        if not measured_request.context.state.trimming:
            lifecycle.announce_trimming(measured_request.context)
    return _build_answer(measured_request, remaining_entries, context_version)


def _build_answer(
    measured_request: MeasuredRequest,
    remaining_entries: Sequence[TranscriptEntry],
    context_version: int,
) -> FittedRequest:
    if remaining_entries == measured_request.transcript.entries:
        return FittedRequest(
            request=measured_request.request,
            context_version=context_version,
            tokens=measured_request.measurement.tokens,
            measure_answer=foresee_usage(measured_request.context, measured_request.request),
        )
    fallback = measured_request.context.policy.fallback
    sent_tokens = count_sent_tokens(remaining_entries) * measured_request.measurement.token_ratio
    return FittedRequest(
        request=_build_trimmed_request(measured_request, remaining_entries),
        # Usage that a provider counts for a trimmed request must not be taken for the context's.
        context_version=None,
        notices=(fallback.notice,) if fallback.notify else (),
        tokens=measured_request.overhead_tokens + int(sent_tokens),
    )


def _build_trimmed_request(
    measured_request: MeasuredRequest, remaining_entries: Sequence[TranscriptEntry]
) -> Request:
    """Return the request with the remaining messages, and the policy's notice for the model."""
    policy = measured_request.context.policy
    request = keep_entries(measured_request.request, remaining_entries)
    kind = policy.fallback.kind
    notice_text = describe_traits(policy).failure_nudge if kind == "notice" else ""
    if kind in TRIMMERS:
        notice_text = TRIMMERS[kind].get_notice(policy)
    if not notice_text:
        return request
    return append_system_text(request, notice_text)


def _build_overflow_refusal(measured_request: MeasuredRequest) -> Exception:
    log_request_decision(measured_request, "refuse")
    tokens = measured_request.measurement.tokens
    detail = (
        f"The conversation has about {tokens:,} tokens and could not be compacted; "
        f"{measured_request.context.facts.model.name} takes at most {measured_request.window:,}."
    )
    return ContextBudgetExceeded(detail, tokens=tokens, window=measured_request.window)
