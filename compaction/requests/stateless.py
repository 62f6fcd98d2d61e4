"""A request without a session, whose client sends all of the history each time: made to fit its model, and nothing is stored."""

from dataclasses import replace
from typing import Any

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.core.estimate import estimate_transcript
from compaction.core.presets import ONECLAW
from compaction.core.trimming import drop_oldest_to_fit
from compaction.models import SessionState
from compaction.requests.measured_request import MeasuredRequest, measure_request
from compaction.sizing import calibration, session_context
from compaction.sizing.session_context import SessionContext


def fit_stateless_request(model: Any, request: Any, *, refusal: Any = None) -> Any:
    """The host's Fit of a request to a model: over the threshold, its oldest messages are left out until it is under it.

    `refused`: the host's overflow error that this very request met; its numbers are learned and the request becomes smaller. Raises the
    error again where nothing can be left out, and one like it where the newest message alone is larger than the window. Where automatic
    compaction is off, or the window is unknown, a request is sent as it is.
    """
    measured_request = _measure_stateless_request(model, request)
    if refusal is not None:
        measured_request = _apply_refusal(measured_request, refusal)
    budget = measured_request.context.budget
    if budget is None or measured_request.context.automatic_mode == "off":
        if refusal is not None:
            raise refusal
        return _build_answer(measured_request, request, tokens=measured_request.measurement.tokens)
    _refuse_oversized_message(measured_request)
    if not (budget.is_over(measured_request.measurement.tokens) or measured_request.is_over_window):
        return _build_answer(measured_request, request, tokens=measured_request.measurement.tokens)
    limit_tokens = budget.threshold if budget.is_strict else budget.threshold - 1
    remaining_entries = drop_oldest_to_fit(
        measured_request.transcript.entries,
        limit_tokens=limit_tokens,
        overhead_tokens=measured_request.overhead_tokens,
        token_ratio=measured_request.measurement.token_ratio,
    )
    if refusal is not None and len(remaining_entries) == len(measured_request.transcript.entries):
        raise refusal
    tokens = int(
        estimate_transcript(
            measured_request.transcript, measured_request.context.policy, remaining_entries
        )
        * measured_request.measurement.token_ratio
    )
    return _build_answer(
        measured_request,
        backend_registry.get_backend().keep_messages(
            request, {entry.seq for entry in remaining_entries}
        ),
        tokens=tokens,
    )


def learn_token_count(model: Any, request: Any, tokens: int) -> None:
    """What a provider counted of a request that was sent teaches how its model counts."""
    facts, reference_policy = (
        backend_registry.get_backend().build_model_facts(model, request),
        ONECLAW,
    )
    transcript = (
        backend_registry.get_backend().parse_request(request, None, family=facts.family).transcript
    )
    calibration.learn_from_response(
        facts.model,
        calibration.load_calibration(facts.model, facts.window),
        real_tokens=tokens,
        estimated_tokens=estimate_transcript(transcript, reference_policy),
    )


def _measure_stateless_request(model: Any, request: Any) -> MeasuredRequest:
    """Measured as a session's next request would be, by the policy of the model or the project."""
    facts = backend_registry.get_backend().build_model_facts(model, request)
    facts = replace(facts, is_automatic=facts.is_automatic and policies.is_compaction_automatic())
    policy_name, policy = policies.choose_policy(facts.model_policy)
    model_calibration = calibration.load_calibration(facts.model, facts.window)
    state = SessionState(session_id=facts.session_id)
    context = SessionContext(
        facts=facts,
        policy_name=policy_name,
        policy=policy,
        state=state,
        budget=None,
        model_calibration=model_calibration,
    )
    return measure_request(replace(context, budget=session_context.plan_budget(context)), request)


def _apply_refusal(measured_request: MeasuredRequest, error: Any) -> MeasuredRequest:
    """The same after a refusal: its window where it told one, and more real tokens to an estimated one, which it told or proved."""
    context, estimate = (
        measured_request.context,
        max(1, estimate_transcript(measured_request.transcript, measured_request.context.policy)),
    )
    calibration.learn_refusal_window(
        context.facts.model, registered_window=context.facts.window, window=error.window
    )
    window = min((size for size in (error.window, measured_request.window) if size), default=0)
    if not window:
        return measured_request
    overflow_context = replace(
        context,
        facts=replace(context.facts, window=window),
        model_calibration=replace(context.model_calibration, window=None),
    )
    token_ratio = max(
        measured_request.measurement.token_ratio, (error.tokens or window + 1) / estimate
    )
    measurement = replace(
        measured_request.measurement,
        tokens=max(int(estimate * token_ratio), window + 1),
        token_ratio=token_ratio,
    )
    return replace(
        measured_request,
        context=replace(overflow_context, budget=session_context.plan_budget(overflow_context)),
        measurement=measurement,
    )


def _refuse_oversized_message(measured_request: MeasuredRequest) -> None:
    """The one thing an estimate may refuse: a newest message larger than the whole window."""
    newest_tokens = (
        measured_request.transcript.entries[-1].tokens if measured_request.transcript.entries else 0
    )
    if newest_tokens > measured_request.window:
        model = measured_request.context.facts.model
        detail = f"The newest message alone has about {newest_tokens:,} tokens; the context window of {model} is {measured_request.window:,}."
        raise backend_registry.get_backend().build_overflow_error(
            detail, tokens=newest_tokens, window=measured_request.window
        )


def _build_answer(measured_request: MeasuredRequest, request: Any, *, tokens: int) -> Any:
    is_complete = len(request.messages) == len(measured_request.request.messages)
    return backend_registry.get_backend().build_fit_answer(
        request, version=0 if is_complete else None, tokens=tokens
    )
