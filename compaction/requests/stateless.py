"""A request without a session, whose client sends all of the history each time: made to fit its model, and nothing is stored."""

from dataclasses import replace
from typing import Any

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.core.estimate import estimated
from compaction.core.presets import ONECLAW
from compaction.core.trimming import drop_oldest
from compaction.models import SessionState
from compaction.requests.measured_request import Reading, read
from compaction.sizing import calibration, session_context
from compaction.sizing.session_context import Situation


def fit(model: Any, request: Any, *, refused: Any = None) -> Any:
    """The host's Fit of a request to a model: over the threshold, its oldest messages are left out until it is under it.

    `refused`: the host's overflow error that this very request met; its numbers are learned and the request becomes smaller. Raises the
    error again where nothing can be left out, and one like it where the newest message alone is larger than the window. Where automatic
    compaction is off, or the window is unknown, a request is sent as it is.
    """
    reading = _read(model, request)
    if refused is not None:
        reading = _corrected(reading, refused)
    budget = reading.now.budget
    if budget is None or reading.now.automatic == "off":
        if refused is not None:
            raise refused
        return _answer(reading, request, tokens=reading.measure.tokens)
    _refuse_the_impossible(reading)
    if not (budget.over(reading.measure.tokens) or reading.over_window):
        return _answer(reading, request, tokens=reading.measure.tokens)
    limit = budget.threshold if budget.strict else budget.threshold - 1
    left = drop_oldest(
        reading.transcript.entries,
        limit_tokens=limit,
        overhead=reading.overhead,
        scale=reading.measure.scale,
    )
    if refused is not None and len(left) == len(reading.transcript.entries):
        raise refused
    tokens = int(estimated(reading.transcript, reading.now.policy, left) * reading.measure.scale)
    return _answer(
        reading, backend_registry.get().keep(request, {entry.seq for entry in left}), tokens=tokens
    )


def learn(model: Any, request: Any, tokens: int) -> None:
    """What a provider counted of a request that was sent teaches how its model counts."""
    subject, plain = backend_registry.get().subject_of(model, request), ONECLAW
    transcript = backend_registry.get().read(request, None, family=subject.family).transcript
    calibration.learn_response(
        subject.model,
        calibration.of(subject.model, subject.window),
        real=tokens,
        estimated=estimated(transcript, plain),
    )


def _read(model: Any, request: Any) -> Reading:
    """Measured as a session's next request would be, by the policy of the model or the project."""
    subject = backend_registry.get().subject_of(model, request)
    subject = replace(subject, automatic=subject.automatic and policies.automatic())
    name, policy = policies.choose(subject.model_policy)
    experience = calibration.of(subject.model, subject.window)
    state = SessionState(session_id=subject.session_id)
    now = Situation(
        subject=subject,
        policy_name=name,
        policy=policy,
        state=state,
        budget=None,
        experience=experience,
    )
    return read(replace(now, budget=session_context.planned(now)), request)


def _corrected(reading: Reading, error: Any) -> Reading:
    """The same after a refusal: its window where it told one, and more real tokens to an estimated one, which it told or proved."""
    now, estimate = reading.now, max(1, estimated(reading.transcript, reading.now.policy))
    calibration.learn_refusal(now.subject.model, registered=now.subject.window, window=error.window)
    window = min((size for size in (error.window, reading.window) if size), default=0)
    if not window:
        return reading
    told = replace(
        now,
        subject=replace(now.subject, window=window),
        experience=replace(now.experience, window=None),
    )
    scale = max(reading.measure.scale, (error.tokens or window + 1) / estimate)
    measure = replace(reading.measure, tokens=max(int(estimate * scale), window + 1), scale=scale)
    return replace(
        reading, now=replace(told, budget=session_context.planned(told)), measure=measure
    )


def _refuse_the_impossible(reading: Reading) -> None:
    """The one thing an estimate may refuse: a newest message larger than the whole window."""
    newest = reading.transcript.entries[-1].tokens if reading.transcript.entries else 0
    if newest > reading.window:
        model = reading.now.subject.model
        detail = f"The newest message alone has about {newest:,} tokens; the context window of {model} is {reading.window:,}."
        raise backend_registry.get().overflow(detail, tokens=newest, window=reading.window)


def _answer(reading: Reading, request: Any, *, tokens: int) -> Any:
    whole = len(request.messages) == len(reading.request.messages)
    return backend_registry.get().fit(request, version=0 if whole else None, tokens=tokens)
