"""After a response: measure, tell how full the context is, and ask for a run where it is over the threshold."""

import logging
from typing import Any
from uuid import UUID

from compaction.backends import registry as backend_registry
from compaction.models import CompactionRun, SessionState
from compaction.runs import engine
from compaction.sizing import calibration, session_context
from compaction.sizing.decision_log import Action, decided
from compaction.sizing.session_context import Situation
from compaction.sizing.usage import of_situation

logger = logging.getLogger(__name__)


def connect() -> None:
    """Listen for finished responses."""
    backend_registry.get().on_response(measure_and_ask, uid="compaction.measure_and_ask")


def measure_and_ask(sender: Any = None, *, session_id: UUID, **_: Any) -> None:
    """One measurement, one event, at most one run. Never raises: the sender's response is already given."""
    try:
        now = _with_counts_believed(session_context.of(session_id))
        if now is None:
            return
        told = of_situation(now)
        backend_registry.get().announce(session_id, ("context.usage", told))
        action = _action(now, should_compact=told["should_compact"])
        tokens = told["estimated_input_tokens"]
        figures = {
            "last_known" if told["source"] == "provider" else "estimate": tokens,
            "messages": told["live_message_count"],
        }
        decided(
            now,
            trigger=CompactionRun.Trigger.AFTER_RESPONSE,
            tokens=tokens,
            action=action,
            **figures,
        )
        if action == "compact":
            engine.request_run(session_id, trigger=CompactionRun.Trigger.AFTER_RESPONSE)
        _learn(now)
    except Exception:
        logger.exception("the context of session %s was not measured", session_id)


def _learn(now: Situation) -> None:
    """The provider's count of this response's request teaches how its model counts."""
    usage = backend_registry.get().last_usage(now.subject)
    if usage is not None and usage.after_seq >= now.subject.last_seq:
        estimated = session_context.plain_tokens(now, before_seq=usage.after_seq)
        calibration.learn_response(
            now.subject.model, now.experience, real=usage.input, estimated=estimated
        )


def _action(now: Situation, *, should_compact: bool) -> Action:
    if not should_compact:
        return "none"
    wanted = (
        now.automatic == "on" and CompactionRun.Trigger.AFTER_RESPONSE in now.policy.trigger.phases
    )
    return "compact" if wanted else "held"


def _with_counts_believed(now: Situation | None) -> Situation | None:
    """A counted answer measures better than a refusal did; while requests are trimmed no answer counts the whole context."""
    refusal_stands = (
        now is None or not now.learned or now.state.learned_scale <= 1 or now.state.trimming
    )
    if now is None or refusal_stands or backend_registry.get().last_usage(now.subject) is None:
        return now
    SessionState.objects.filter(pk=now.subject.session_id).update(learned_scale=1)
    return session_context.of(now.subject.session_id)
