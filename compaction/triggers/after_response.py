"""After a response: measure, tell how full the context is, and ask for a run where it is over the threshold."""

import logging
from typing import Any
from uuid import UUID

from compaction.backends import registry as backend_registry
from compaction.backends.events import CompactionEvent
from compaction.models import CompactionRun, SessionState
from compaction.runs import engine
from compaction.sizing import calibration, session_context
from compaction.sizing.decision_log import Action, log_decision
from compaction.sizing.session_context import SessionContext
from compaction.sizing.usage import describe_usage

logger = logging.getLogger(__name__)


def connect_receivers() -> None:
    """Listen for finished responses."""
    backend_registry.get_backend().subscribe_to_responses(
        measure_and_request_run, uid="compaction.measure_and_ask"
    )


def measure_and_request_run(sender: Any = None, *, session_id: UUID, **_: Any) -> None:
    """One measurement, one event, at most one run. Never raises: the sender's response is already given."""
    try:
        context = _drop_outdated_token_ratio(session_context.load_session_context(session_id))
        if context is None:
            return
        payload = describe_usage(context)
        backend_registry.get_backend().announce_events(
            session_id, (CompactionEvent.CONTEXT_USAGE, payload)
        )
        action = _choose_action(context, should_compact=payload["should_compact"])
        tokens = payload["estimated_input_tokens"]
        log_fields = {
            "last_known" if payload["source"] == "provider" else "estimate": tokens,
            "messages": payload["live_message_count"],
        }
        log_decision(
            context,
            trigger=CompactionRun.Trigger.AFTER_RESPONSE,
            tokens=tokens,
            action=action,
            **log_fields,
        )
        if action == "compact":
            engine.request_run(session_id, trigger=CompactionRun.Trigger.AFTER_RESPONSE)
        _learn_from_response(context)
    except Exception:
        logger.exception("the context of session %s was not measured", session_id)


def _learn_from_response(context: SessionContext) -> None:
    """The provider's count of this response's request teaches how its model counts."""
    last_usage = backend_registry.get_backend().load_last_usage(context.facts)
    if last_usage is not None and last_usage.after_seq >= context.facts.last_seq:
        estimated_tokens = session_context.estimate_plain_tokens(
            context, before_seq=last_usage.after_seq
        )
        calibration.learn_from_response(
            context.facts.model,
            context.model_calibration,
            real_tokens=last_usage.input,
            estimated_tokens=estimated_tokens,
        )


def _choose_action(context: SessionContext, *, should_compact: bool) -> Action:
    if not should_compact:
        return "none"
    should_run = (
        context.automatic_mode == "on"
        and CompactionRun.Trigger.AFTER_RESPONSE in context.policy.trigger.phases
    )
    return "compact" if should_run else "held"


def _drop_outdated_token_ratio(context: SessionContext | None) -> SessionContext | None:
    """A counted answer measures better than a refusal did; while requests are trimmed no answer counts the whole context."""
    keeps_token_ratio = (
        context is None
        or not context.has_refusal_sizes
        or context.state.learned_scale <= 1
        or context.state.trimming
    )
    if (
        context is None
        or keeps_token_ratio
        or backend_registry.get_backend().load_last_usage(context.facts) is None
    ):
        return context
    SessionState.objects.filter(pk=context.facts.session_id).update(learned_scale=1)
    return session_context.load_session_context(context.facts.session_id)
