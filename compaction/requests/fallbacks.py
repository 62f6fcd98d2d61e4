"""A request that is too large, when no run will make it smaller: what the policy's fallback does to it. Nothing stored changes."""

from collections.abc import Sequence
from typing import Any

from compaction.backends import registry as backend_registry
from compaction.core.transcript import TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit, slide_to_fit
from compaction.models import CompactionRun
from compaction.requests.measured_request import MeasuredRequest
from compaction.runs import lifecycle
from compaction.sizing.decision_log import log_decision


def select_remaining_entries(measured_request: MeasuredRequest) -> Sequence[TranscriptEntry]:
    """The messages that would be sent: all, or those that the fallback leaves."""
    kind = measured_request.context.policy.fallback.kind
    if (
        not measured_request.is_too_large
        or measured_request.context.budget is None
        or kind == "error"
    ):
        return measured_request.transcript.entries
    return (
        _slide_window(measured_request)
        if kind == "slide_window"
        else _drop_oldest_entries(measured_request, measured_request.transcript.entries)
    )


def apply_fallback(measured_request: MeasuredRequest, context_version: int) -> Any:
    """The host's answer for a request that is about to be sent: whole where it fits.

    Raises the host's overflow error where it is over the window and the policy wants an error for that.
    """
    backend, trigger, tokens = (
        backend_registry.get_backend(),
        CompactionRun.Trigger.BEFORE_REQUEST,
        measured_request.measurement.tokens,
    )
    entries, remaining_entries = (
        measured_request.transcript.entries,
        select_remaining_entries(measured_request),
    )
    if len(remaining_entries) == len(entries):
        if (
            measured_request.is_over_window
            and measured_request.context.policy.fallback.kind == "error"
        ):
            raise _build_overflow_refusal(measured_request)
        log_decision(
            measured_request.context,
            trigger=trigger,
            tokens=tokens,
            action="none",
            **measured_request.log_fields,
        )
        return backend.build_fit_answer(measured_request.request, version=context_version)
    log_decision(
        measured_request.context,
        trigger=trigger,
        tokens=tokens,
        action="trim",
        **measured_request.log_fields,
    )
    if not measured_request.context.state.trimming:
        lifecycle.announce_trimming(measured_request.context)
    return backend.build_fit_answer(
        _build_trimmed_request(measured_request, remaining_entries),
        version=None,
        notices=build_notices(measured_request),
    )


def build_notices(measured_request: MeasuredRequest) -> tuple[str, ...]:
    """What the user is told of a request that holds less than the conversation."""
    fallback = measured_request.context.policy.fallback
    return (fallback.notice,) if fallback.notify else ()


def _slide_window(measured_request: MeasuredRequest) -> Sequence[TranscriptEntry]:
    """What the window shows after it slid; where that alone does not do, without the oldest of it."""
    assert measured_request.context.budget is not None
    policy, token_ratio = measured_request.context.policy, measured_request.measurement.token_ratio
    window_entries = slide_to_fit(
        measured_request.transcript.entries,
        limit_tokens=measured_request.context.budget.threshold,
        first_count=policy.protect.first,
        fraction=policy.slide.fraction,
        overhead_tokens=measured_request.overhead_tokens,
        token_ratio=token_ratio,
    )
    return _drop_oldest_entries(measured_request, window_entries)


def _drop_oldest_entries(
    measured_request: MeasuredRequest, entries: Sequence[TranscriptEntry]
) -> Sequence[TranscriptEntry]:
    assert measured_request.context.budget is not None
    return drop_oldest_to_fit(
        entries,
        limit_tokens=measured_request.context.budget.threshold,
        overhead_tokens=measured_request.overhead_tokens,
        token_ratio=measured_request.measurement.token_ratio,
    )


def _build_trimmed_request(
    measured_request: MeasuredRequest, remaining_entries: Sequence[TranscriptEntry]
) -> Any:
    """The request with what is left, and with what the model is told of what is not."""
    backend, policy = backend_registry.get_backend(), measured_request.context.policy
    request = backend.keep_messages(
        measured_request.request, {entry.seq for entry in remaining_entries}
    )
    notice_text = {"slide_window": policy.slide.marker, "notice": policy.inject.failure_nudge}.get(
        policy.fallback.kind, ""
    )
    return backend.append_system_text(request, notice_text) if notice_text else request


def _build_overflow_refusal(measured_request: MeasuredRequest) -> Exception:
    log_decision(
        measured_request.context,
        trigger=CompactionRun.Trigger.BEFORE_REQUEST,
        tokens=measured_request.measurement.tokens,
        action="refuse",
        **measured_request.log_fields,
    )
    detail = (
        f"The conversation has about {measured_request.measurement.tokens:,} tokens and could not be compacted; "
        f"the context window of {measured_request.context.facts.model} is {measured_request.window:,}."
    )
    return backend_registry.get_backend().build_overflow_error(
        detail, tokens=measured_request.measurement.tokens, window=measured_request.window
    )
