"""Measure a session after each response, and request a run over the threshold."""

import logging
from typing import Any, cast
from uuid import UUID

from chatcore.events.log import append_events
from chatcore.events.types import ContextUsagePayload, EventType
from compaction.core.state import StructuredState
from compaction.models import CompactionRun, SessionState
from compaction.runs import engine
from compaction.sessions import calibration, request_size, session_context
from compaction.sessions.decision_log import Action, log_decision
from compaction.sessions.memory_app import get_memory
from compaction.sessions.session_context import SessionContext
from compaction.sessions.usage import describe_usage
from compaction.summaries import state as summary_state

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger


def measure_and_request_run(*, session_id: UUID, **_: Any) -> None:
    """Measure the session once, announce its usage, and request at most one run.

    Never raises: the response of the sender is already stored and sent.
    """
    try:
        context = _load_current_context(session_id)
        if context is None:
            return
        usage = describe_usage(context)
        append_events(session_id, (EventType.CONTEXT_USAGE, cast(ContextUsagePayload, usage)))
        has_work = usage["should_compact"] or summary_state.is_session_memory_full(context)
        action = _choose_action(context, should_compact=has_work)
        tokens = usage["estimated_input_tokens"]
        is_counted = usage["source"] == "provider"
        log_decision(
            context,
            trigger=Trigger.AFTER_RESPONSE,
            tokens=tokens,
            action=action,
            estimate=None if is_counted else tokens,
            last_known=tokens if is_counted else None,
            messages=usage["live_message_count"],
        )
        if action == "compact":
            engine.request_run(session_id, trigger=Trigger.AFTER_RESPONSE)
        # Last, because a run that is requested above must not wait for the statistics.
        get_memory().read_messages(context, reads_all=False)
        _learn_from_response(context)
    except Exception:
        logger.exception("the context of session %s was not measured", session_id)


def request_fold(context: SessionContext, structured_state: StructuredState) -> None:
    """Request the run that folds a memory if it is full, as a response would."""
    if not summary_state.is_full(structured_state, context.policy.memory):
        return
    if _choose_action(context, should_compact=True) == "compact":
        engine.request_run(context.facts.session_id, trigger=Trigger.AFTER_RESPONSE)


def _load_current_context(session_id: UUID) -> SessionContext | None:
    """Load the session's context without a refusal's token ratio that a newer count replaces.

    A counted answer measures better than a refusal did. While requests are trimmed, no answer
    counts the whole context, so the refusal's ratio stays.
    """
    context = session_context.load_session_context(session_id)
    if context is None or context.refusal_token_ratio <= 1 or context.state.trimming:
        return context
    if context.facts.last_usage is None:
        return context
    # The context is loaded again, because its budget and measurement depend on the ratio.
    SessionState.objects.filter(pk=session_id).update(learned_scale=1)
    return session_context.load_session_context(session_id)


def _choose_action(context: SessionContext, *, should_compact: bool) -> Action:
    if not should_compact:
        return "none"
    is_phase_on = Trigger.AFTER_RESPONSE in context.policy.trigger.phases
    return "compact" if is_phase_on and context.automatic_mode == "on" else "held"


def _learn_from_response(context: SessionContext) -> None:
    """Learn how the model counts, if the newest message is an answer whose request was counted."""
    last_usage = context.facts.last_usage
    if last_usage is None or last_usage.after_seq < context.facts.last_seq:
        return
    calibration.learn_from_response(
        context.facts.model.name,
        context.model_calibration,
        real_tokens=last_usage.input,
        estimate=lambda: request_size.estimate_plain_tokens(
            context, before_seq=last_usage.after_seq
        ),
    )
