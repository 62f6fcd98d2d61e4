"""Make a request fit its model that belongs to no session; nothing is stored."""

from dataclasses import replace
from typing import cast

from chatcore.context.compactor import FittedRequest
from chatcore.providers.base import Request
from chatcore.providers.errors import ContextOverflow
from compaction import policies
from compaction.core.estimate import estimate_transcript
from compaction.core.presets import ONECLAW
from compaction.models import SessionState
from compaction.requests.measured_request import (
    MeasuredRequest,
    build_oversize_refusal,
    measure_request,
)
from compaction.sessions import calibration, session_context
from compaction.sessions.built_requests import keep_entries, parse_request
from compaction.sessions.facts import SessionFacts, build_model_facts
from compaction.sessions.session_context import SessionContext
from models_registry.models import AiModel


def fit_stateless_request(
    model: AiModel, request: Request, *, refusal: ContextOverflow | None = None
) -> FittedRequest:
    """Return a request under the threshold, without its oldest messages.

    If the results of tools alone are too large, they are shortened.

    `refusal` is the refusal for length that this request has just met: its numbers are learned,
    and the request must become smaller. The refusal is raised again if nothing can be left out. An
    overflow error is also raised if the newest message alone is larger than the window, unless it
    is a tool's result, which is shortened. The request is sent as it is where automatic compaction
    is off or the window is unknown.
    """
    measured_request = _measure_stateless_request(model, request)
    if refusal is not None:
        measured_request = _apply_refusal(measured_request, refusal)
    is_off = measured_request.context.automatic_mode == "off"
    if is_off and refusal is not None:
        raise cast(Exception, refusal)
    if not is_off and measured_request.has_oversized_message and measured_request.opens_turn:
        raise build_oversize_refusal(measured_request)
    if is_off or not (measured_request.is_over_threshold or measured_request.is_over_window):
        return FittedRequest(
            request=request, context_version=0, tokens=measured_request.measurement.tokens
        )
    budget = measured_request.context.budget
    assert budget is not None
    # Without `is_strict` a request of exactly the threshold counts as over it.
    entries = measured_request.drop_oldest(budget.threshold - (not budget.is_strict))
    transcript = measured_request.transcript
    # The same request would be refused again, and every refused call may cost money.
    if refusal is not None and entries == transcript.entries:
        raise cast(Exception, refusal)
    estimate = estimate_transcript(transcript, measured_request.context.policy, entries)
    return FittedRequest(
        request=keep_entries(request, entries),
        context_version=0 if entries == transcript.entries else None,
        tokens=int(estimate * measured_request.measurement.token_ratio),
    )


def estimate_request(model: AiModel, request: Request) -> int:
    """Return the tokens of the whole request, as its model is known to count them."""
    return _measure_stateless_request(model, request).measurement.tokens


def shorten_request(model: AiModel, request: Request, *, limit_tokens: int) -> FittedRequest | None:
    """Return the request without its oldest messages; None if none can go.

    Results of tools are shortened where they alone are too large. Nothing goes where automatic
    compaction is off.
    """
    measured_request = _measure_stateless_request(model, request)
    if not measured_request.context.facts.is_automatic:
        return None
    remaining_entries = measured_request.drop_oldest(limit_tokens)
    if remaining_entries == measured_request.transcript.entries:
        return None
    return FittedRequest(
        request=keep_entries(request, remaining_entries),
        context_version=None,
        notices=(measured_request.context.policy.fallback.notice,),
    )


def learn_window(model: AiModel, tokens: int) -> None:
    """Learn the window that refusals have shown, after a smaller request was answered."""
    calibration.learn_refusal_window(
        str(model), registered_window=model.context_window_size, window=max(1, tokens)
    )


def learn_token_count(model: AiModel, request: Request, tokens: int) -> None:
    """Learn from a provider's count of a sent request how its model counts tokens."""
    facts = build_model_facts(model)
    transcript = parse_request(request, None, family=facts.family).transcript
    calibration.learn_from_response(
        facts.name,
        calibration.load_calibration(facts.name, facts.window),
        real_tokens=tokens,
        # ONECLAW counts by CHARS_PER_TOKEN_ESTIMATE, which is what a ratio refers to.
        estimate=lambda: estimate_transcript(transcript, ONECLAW),
    )


def _measure_stateless_request(model: AiModel, request: Request) -> MeasuredRequest:
    """Measure the request as a session's next one, by the policy of its model or the project."""
    facts = SessionFacts(
        model=build_model_facts(model),
        max_tokens=request.max_tokens,
        is_automatic=policies.is_compaction_automatic(),
    )
    policy_name, policy = policies.choose_policy(facts.model.policy)
    context = SessionContext(
        facts=facts,
        policy_name=policy_name,
        policy=policy,
        state=SessionState(session_id=facts.session_id),
        budget=None,
        model_calibration=calibration.load_calibration(facts.model.name, facts.model.window),
    )
    return measure_request(replace(context, budget=session_context.plan_budget(context)), request)


def _apply_refusal(measured_request: MeasuredRequest, refusal: ContextOverflow) -> MeasuredRequest:
    """Correct a measurement by a refusal: a smaller window, and a larger token ratio.

    A refusal without numbers still proves that the request has more tokens than the window.
    """
    context = measured_request.context
    facts = context.facts
    known_windows = [size for size in (refusal.window, measured_request.window) if size]
    if not known_windows:
        return measured_request
    window = min(known_windows)
    # The registry's limit of a request says nothing about the window.
    if window != facts.model.max_input:
        facts = replace(facts, model=replace(facts.model, window=window))
    context = replace(
        context,
        facts=facts,
        model_calibration=replace(context.model_calibration, window=None),
    )
    estimate = max(1, estimate_transcript(measured_request.transcript, context.policy))
    true_tokens = refusal.tokens or window + 1
    token_ratio = max(measured_request.measurement.token_ratio, true_tokens / estimate)
    return replace(
        measured_request,
        context=replace(context, budget=session_context.plan_budget(context)),
        measurement=replace(
            measured_request.measurement,
            tokens=max(int(estimate * token_ratio), window + 1),
            token_ratio=token_ratio,
        ),
    )
