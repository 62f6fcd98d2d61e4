"""Trim a request that is too large and that no run will make smaller. Storage is unchanged."""

from collections.abc import Sequence

from chatcore.context.compactor import FittedRequest
from chatcore.providers.base import Request
from chatcore.providers.errors import ContextBudgetExceeded
from compaction.core.transcript import TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit, shorten_results_to_fit, slide_to_fit
from compaction.requests.measured_request import MeasuredRequest, log_request_decision
from compaction.runs import lifecycle
from compaction.sessions.built_requests import append_system_text, keep_messages, replace_texts


def select_remaining_entries(measured_request: MeasuredRequest) -> Sequence[TranscriptEntry]:
    """Return the messages that would be sent: all of them, or those that the fallback leaves.

    The question of the running turn is always among them. Where it and the newest calls with their
    results are still too large, the results are shortened.
    """
    entries: Sequence[TranscriptEntry] = measured_request.transcript.entries
    kind = measured_request.context.policy.fallback.kind
    if measured_request.context.budget is None or not measured_request.is_too_large:
        return entries
    if kind == "error":
        return entries
    if kind == "slide_window":
        # The window alone may still be too large; then its oldest messages go as well.
        entries = _slide_window(measured_request)
    limits = measured_request.trim_limits
    newest_entries = drop_oldest_to_fit(entries, **limits)
    return shorten_results_to_fit(
        newest_entries, knobs=measured_request.context.policy.tool_result, **limits
    )


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
        return FittedRequest(request=measured_request.request, context_version=context_version)
    log_request_decision(measured_request, "trim")
    # The user is told once, and not at every request of a session that stays too large.
    if not measured_request.context.state.trimming:
        lifecycle.announce_trimming(measured_request.context)
    return FittedRequest(
        request=_build_trimmed_request(measured_request, remaining_entries),
        # Usage that a provider counts for a trimmed request must not be taken for the context's.
        context_version=None,
        notices=build_notices(measured_request),
    )


def preview_fallback(measured_request: MeasuredRequest, context_version: int) -> FittedRequest:
    """Return what `apply_fallback` would return now; nobody is told, none raised.

    It has the estimated tokens of what would be sent.
    """
    remaining_entries = select_remaining_entries(measured_request)
    if remaining_entries == measured_request.transcript.entries:
        return FittedRequest(
            request=measured_request.request,
            context_version=context_version,
            tokens=measured_request.measurement.tokens,
        )
    sent_tokens = count_sent_tokens(remaining_entries) * measured_request.measurement.token_ratio
    return FittedRequest(
        request=_build_trimmed_request(measured_request, remaining_entries),
        context_version=None,
        notices=build_notices(measured_request),
        tokens=measured_request.overhead_tokens + int(sent_tokens),
    )


def keep_entries(
    measured_request: MeasuredRequest,
    request: Request,
    remaining_entries: Sequence[TranscriptEntry],
) -> Request:
    """Return the request with the remaining messages only, in the texts that they have there."""
    original_texts = {entry.seq: entry.content for entry in measured_request.transcript.entries}
    shorter_texts = {
        entry.seq: entry.content
        for entry in remaining_entries
        if entry.content != original_texts[entry.seq]
    }
    request = replace_texts(request, shorter_texts)
    return keep_messages(request, {entry.seq for entry in remaining_entries})


def build_notices(measured_request: MeasuredRequest) -> tuple[str, ...]:
    """Return the notices that tell the user that messages were left out of a request."""
    fallback = measured_request.context.policy.fallback
    return (fallback.notice,) if fallback.notify else ()


def _slide_window(measured_request: MeasuredRequest) -> Sequence[TranscriptEntry]:
    policy = measured_request.context.policy
    return slide_to_fit(
        measured_request.transcript.entries,
        first_count=policy.protect.first,
        fraction=policy.slide.fraction,
        **measured_request.trim_limits,
    )


def _build_trimmed_request(
    measured_request: MeasuredRequest, remaining_entries: Sequence[TranscriptEntry]
) -> Request:
    """Return the request with the remaining messages, and the policy's notice for the model."""
    policy = measured_request.context.policy
    request = keep_entries(measured_request, measured_request.request, remaining_entries)
    notice_texts = {"slide_window": policy.slide.marker, "notice": policy.inject.failure_nudge}
    notice_text = notice_texts.get(policy.fallback.kind)
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
