"""Before a request, and after an overflow: make it fit. What CHATCORE["CONTEXT_GUARD"] names."""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from compaction.backends import registry as backend_registry
from compaction.core.estimate import estimate_transcript
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.models import OPEN_STATUSES, CompactionRun, SessionState, find_open_run
from compaction.requests import attachments, fallbacks, stateless
from compaction.requests.measured_request import MeasuredRequest, measure_request, remeasure_request
from compaction.requests.runtime_hint import add_runtime_hint
from compaction.runs import engine
from compaction.sizing import calibration, session_context
from compaction.sizing.decision_log import log_decision
from compaction.sizing.session_context import NoSuchSession, SessionContext
from compaction.triggers import on_change

Trigger = CompactionRun.Trigger

QUEUE_PATIENCE_SECONDS = (
    2.0  # seconds that a run may stay queued before whoever waits for it works on it
)


class ContextGuard:
    """Decides what is done about a request that may not fit. Keeps nothing between calls: what it learns is stored."""

    def before_request(self, session: Any, request: Any) -> Any:
        """The host's Fit. A request that is too large is compacted first where the policy's phases say so, then trimmed if it must be.

        Raises the host's overflow error, before any call, when the newest message alone is larger than the window, or when the
        request is and the policy's fallback is an error.
        """
        context = session_context.load_session_context(session.pk)
        if context is None or context.automatic_mode == "off":
            return backend_registry.get_backend().build_fit_answer(
                add_runtime_hint(context, attachments.fit_attachments(context, request))
                if context
                else request,
                version=session.context_version,
            )
        measured_request = measure_request(context, request)
        if wait_for_open_run(measured_request):
            measured_request = remeasure_request(session, measured_request)
        refuse_oversized_message(measured_request)
        trigger = choose_trigger(measured_request)
        if trigger and may_run_automatically(measured_request.context):
            log_decision(
                measured_request.context,
                trigger=trigger,
                tokens=measured_request.measurement.tokens,
                action="compact",
                **measured_request.log_fields,
            )
            engine.compact_now(session.pk, trigger=trigger)
            measured_request = remeasure_request(session, measured_request)
        request_with_hint = replace(
            measured_request,
            request=add_runtime_hint(measured_request.context, measured_request.request),
        )
        return fallbacks.apply_fallback(request_with_hint, session.context_version)

    def on_messages_deleted(self, session: Any, seqs: Collection[int]) -> None:
        """Messages are being deleted, in the open transaction: nothing that was written of them stays; then measure anew."""
        on_change.forget_messages(session.pk, seqs)

    def on_messages_superseded(self, session: Any, seqs: Collection[int]) -> None:
        """Messages are superseded or come back, in the open transaction: what was made of them beside a summary goes too."""
        on_change.revert_derived_state(session.pk, seqs)

    def on_session_forked(self, source: Any, fork: Any, last_seq: int) -> None:
        """A session was made of another's messages up to a seq, in the open transaction: it gets what is kept beside the summary."""
        on_change.copy_state_to_fork(source.pk, fork.pk, last_seq=last_seq)

    def after_overflow(self, session: Any, request: Any, error: Any) -> bool:
        """Make room after a provider's refusal, taking its numbers for true; True when the next request will be smaller.

        `request`: what was refused; it tells which tools are offered, those of the client's too.
        """
        context = session_context.load_session_context(session.pk)
        if context is None or context.automatic_mode == "off":
            return False
        overflow_request = measure_request(
            context, backend_registry.get_backend().rebuild_request(session, request)
        )
        request_entries = fallbacks.select_remaining_entries(overflow_request)
        learn_refusal_sizes(context, request_entries, tokens=error.tokens, window=error.window)
        tokens = error.tokens or overflow_request.measurement.tokens
        if Trigger.ON_OVERFLOW in context.policy.trigger.phases and may_run_automatically(context):
            log_decision(
                context,
                trigger=Trigger.ON_OVERFLOW,
                tokens=tokens,
                action="compact",
                force=True,
                **overflow_request.log_fields,
            )
            if (
                engine.compact_now(session.pk, trigger=Trigger.ON_OVERFLOW).status
                == CompactionRun.Status.APPLIED
            ):
                return True
        else:
            log_decision(
                context,
                trigger=Trigger.ON_OVERFLOW,
                tokens=tokens,
                action="held",
                **overflow_request.log_fields,
            )
        measured_request = remeasure_request(session, overflow_request)
        return len(fallbacks.select_remaining_entries(measured_request)) < len(request_entries)

    def estimate_tokens(self, session: Any) -> int:
        """Tokens of the session's next request, measured without reading a message; 0 when it is gone."""
        context = session_context.load_session_context(session.pk)
        return session_context.measure_next_request(context).tokens if context else 0

    def fit_request(self, model: Any, request: Any, *, overflow: Any = None) -> Any:
        """As `stateless.fit` says."""
        return stateless.fit_stateless_request(model, request, refusal=overflow)

    def learn_token_count(self, model: Any, request: Any, tokens: int) -> None:
        """As `stateless.learn` says."""
        stateless.learn_token_count(model, request, tokens)


def wait_for_open_run(measured_request: MeasuredRequest) -> bool:
    """Whether a new turn had to wait for a run, as flow.while_compacting says: until that ended, at most flow.lease_seconds.

    No connection is held meanwhile, and a canceled turn waits no longer. A run that nobody takes is worked on here. Lota, Compaction Queue.
    """
    context, flow = measured_request.context, measured_request.context.policy.flow
    run = (
        find_open_run(context.facts.session_id)
        if flow.while_compacting == "wait" and measured_request.opens_turn
        else None
    )
    if run is None:
        return False
    log_decision(
        context,
        trigger=Trigger.BEFORE_REQUEST,
        tokens=measured_request.measurement.tokens,
        action="wait",
        **measured_request.log_fields,
    )
    deadline = time.monotonic() + flow.lease_seconds
    try:
        while (
            run.status in OPEN_STATUSES
            and (seconds_left := deadline - time.monotonic()) > 0
            and _is_answering(context)
        ):
            run = engine.wait_for_run(
                run,
                seconds=min(seconds_left, QUEUE_PATIENCE_SECONDS),
                should_wait=lambda: _is_answering(context),
            )
            if (
                run.status in OPEN_STATUSES
                and deadline - time.monotonic() > 0
                and _is_answering(context)
            ):
                run = engine.execute_run(run.pk, obey_worker_limit=True) or run
    except NoSuchSession:
        return False
    return True


def _is_answering(context: SessionContext) -> bool:
    return backend_registry.get_backend().is_answering(context.facts)


def choose_trigger(measured_request: MeasuredRequest) -> str | None:
    """Why to compact before sending, if at all: over the threshold where the policy's phases say so.

    A request over the window is an overflow foreseen: a policy that compacts on those compacts on this too.
    """
    phases = measured_request.context.policy.trigger.phases
    if not (measured_request.is_over_threshold or measured_request.is_over_window):
        return None
    is_new_model = backend_registry.get_backend().load_last_model(
        measured_request.context.facts
    ) not in (
        "",
        measured_request.context.facts.model,
    )
    if is_new_model and Trigger.ON_MODEL_CHANGE in phases:
        return Trigger.ON_MODEL_CHANGE
    if Trigger.BEFORE_REQUEST in phases or (
        measured_request.is_over_window and Trigger.ON_OVERFLOW in phases
    ):
        return Trigger.BEFORE_REQUEST
    return None


def may_run_automatically(context: SessionContext) -> bool:
    """Whether an automatic run may start: not while a failure makes it wait, nor once two gained nothing. A rewind holds none back here."""
    return not context.state.is_stopped and not context.state.is_waiting


def refuse_oversized_message(measured_request: MeasuredRequest) -> None:
    """The one thing an estimate may refuse: a newest message larger than the whole window."""
    newest_tokens = (
        measured_request.transcript.entries[-1].tokens if measured_request.transcript.entries else 0
    )
    if newest_tokens > measured_request.window:
        log_decision(
            measured_request.context,
            trigger=Trigger.BEFORE_REQUEST,
            tokens=measured_request.measurement.tokens,
            action="refuse",
            **measured_request.log_fields,
        )
        detail = (
            f"The newest message alone has about {newest_tokens:,} tokens; "
            f"the context window of {measured_request.context.facts.model} is {measured_request.window:,}. Shorten it or choose a model with a larger window."
        )
        raise backend_registry.get_backend().build_overflow_error(
            detail, tokens=newest_tokens, window=measured_request.window
        )


def learn_refusal_sizes(
    context: SessionContext,
    request_entries: Sequence[TranscriptEntry],
    *,
    tokens: int | None,
    window: int | None,
) -> None:
    """Store what a refusal told of the true sizes. Without numbers: what was sent has more tokens than the window."""
    budget = context.budget
    estimate = session_context.estimate_fixed_tokens(context) + estimate_transcript(
        Transcript(entries=tuple(request_entries)), context.policy
    )
    known_ratio = context.state.learned_scale if context.has_refusal_sizes else 1.0
    true_window = min(window or budget.window, budget.window) if budget else 0
    token_ratio = max(known_ratio, (tokens or true_window + 1) / max(1, estimate))
    learned_fields = {
        "learned_for": session_context.build_learned_key(context.facts),
        "learned_scale": token_ratio,
        "learned_window": true_window,
    }
    SessionState.objects.update_or_create(
        session_id=context.facts.session_id, defaults=learned_fields
    )
    calibration.learn_refusal_window(
        context.facts.model, registered_window=context.facts.window, window=window
    )
