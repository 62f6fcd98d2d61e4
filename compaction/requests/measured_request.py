"""Measure a built request against the budget of its session."""

from dataclasses import dataclass
from typing import TypedDict

from compaction.backends import registry as backend_registry
from compaction.backends.base import HostRequest, HostSession
from compaction.core.estimate import LastUsage, Measurement, count_entry_tokens, estimate_transcript
from compaction.core.transcript import Transcript
from compaction.models import CompactionRun
from compaction.requests import attachments
from compaction.sizing import request_size, session_context
from compaction.sizing.decision_log import Action, log_decision
from compaction.sizing.session_context import SessionContext


class LogFields(TypedDict):
    """How a measurement was made, for the log of decisions; sizes in tokens."""

    estimate: int
    last_known: int | None
    messages: int


@dataclass(frozen=True, kw_only=True)
class MeasuredRequest:
    """A built request and its size; `last_usage` is the provider's count that corrected it."""

    context: SessionContext
    request: HostRequest
    transcript: Transcript
    measurement: Measurement
    last_usage: LastUsage | None

    @property
    def window(self) -> int:
        """Return the context window in tokens; 0 if it is unknown."""
        return self.context.budget.window if self.context.budget else 0

    @property
    def is_over_window(self) -> bool:
        """Return True if the provider would probably refuse the request."""
        return self.measurement.tokens > self.window

    @property
    def is_over_threshold(self) -> bool:
        """Return True if the request is large enough to compact the session."""
        return bool(self.context.budget and self.context.budget.is_over(self.measurement.tokens))

    @property
    def is_too_large(self) -> bool:
        """Return True over the window, and after a failed run over the threshold.

        The second rule is FEAT-011's (docs/origins.md#feat-011).
        """
        return self.is_over_window or (self.context.state.trimming and self.is_over_threshold)

    @property
    def newest_tokens(self) -> int:
        """Return the estimated size of the newest message in tokens; 0 if there is none."""
        return self.transcript.entries[-1].tokens if self.transcript.entries else 0

    @property
    def overhead_tokens(self) -> int:
        """Return the size of everything around the messages, in the provider's tokens."""
        estimate = estimate_transcript(self.transcript, self.context.policy, ())
        return int(estimate * self.measurement.token_ratio)

    @property
    def opens_turn(self) -> bool:
        """Return True if the request answers the user, and False if it answers a tool."""
        return not self.transcript.entries or self.transcript.entries[-1].role != "tool"

    @property
    def log_fields(self) -> LogFields:
        """Return how the measurement was made, for the log of decisions."""
        return {
            "estimate": estimate_transcript(self.transcript, self.context.policy),
            "last_known": self.last_usage.tokens if self.last_usage else None,
            "messages": len(self.transcript.entries),
        }


def measure_request(context: SessionContext, request: HostRequest) -> MeasuredRequest:
    """Shorten the files of a built request to their share, and measure it.

    The estimate is corrected by what the provider last counted.
    """
    backend = backend_registry.get_backend()
    fitted_request = attachments.fit_attachments(context, request)
    parsed_request = backend.parse_request(
        fitted_request, backend.load_last_usage(context.facts), family=context.facts.family
    )
    # Counts that the host stored are used where the policy counts alike, which saves counting
    # again.
    transcript = count_entry_tokens(
        request_size.drop_foreign_counts(parsed_request.transcript, context.policy),
        context.policy,
    )
    measurement = request_size.measure_transcript(context, transcript, parsed_request.last_usage)
    return MeasuredRequest(
        context=context,
        request=fitted_request,
        transcript=transcript,
        measurement=measurement,
        last_usage=parsed_request.last_usage,
    )


def remeasure_request(session: HostSession, previous_request: MeasuredRequest) -> MeasuredRequest:
    """Build the request again from storage, after something was done, and measure it."""
    context = session_context.load_session_context(session.pk) or previous_request.context
    request = backend_registry.get_backend().rebuild_request(session, previous_request.request)
    return measure_request(context, request)


def describe_oversized_message(measured_request: MeasuredRequest) -> str:
    """Return a sentence for the user that compares the newest message with the window."""
    return (
        f"The newest message alone has about {measured_request.newest_tokens:,} tokens; "
        f"the context window of {measured_request.context.facts.model} "
        f"is {measured_request.window:,}."
    )


def log_request_decision(
    measured_request: MeasuredRequest,
    action: Action,
    *,
    trigger: str = CompactionRun.Trigger.BEFORE_REQUEST,
) -> None:
    """Write what is done about a request before it is sent to the log of decisions."""
    log_decision(
        measured_request.context,
        trigger=trigger,
        tokens=measured_request.measurement.tokens,
        action=action,
        **measured_request.log_fields,
    )
