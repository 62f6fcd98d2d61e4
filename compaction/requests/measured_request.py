"""A built request, measured against the budget of its session."""

from dataclasses import dataclass
from typing import Any

from compaction.backends import registry as backend_registry
from compaction.core.estimate import LastUsage, Measurement, count_entry_tokens, estimate_transcript
from compaction.core.transcript import Transcript
from compaction.requests import attachments
from compaction.sizing import session_context
from compaction.sizing.session_context import SessionContext


@dataclass(frozen=True, kw_only=True)
class MeasuredRequest:
    """A session's next request, as built, and how large it is. `usage`: what it was corrected by."""

    context: SessionContext
    request: Any
    transcript: Transcript
    measurement: Measurement
    last_usage: LastUsage | None

    @property
    def window(self) -> int:
        """In tokens; 0 where it is unknown, and then nothing here applies."""
        return self.context.budget.window if self.context.budget else 0

    @property
    def is_over_window(self) -> bool:
        """Whether the provider would refuse it, as far as we know."""
        return self.measurement.tokens > self.window

    @property
    def is_over_threshold(self) -> bool:
        """Whether there is reason to compact."""
        return bool(self.context.budget and self.context.budget.is_over(self.measurement.tokens))

    @property
    def is_too_large(self) -> bool:
        """Over the window; or over the threshold when the last run failed. FEAT-011, Failure Handling Rules."""
        return self.is_over_window or (self.context.state.trimming and self.is_over_threshold)

    @property
    def overhead_tokens(self) -> int:
        """Real tokens of what stands around the messages."""
        return int(
            estimate_transcript(self.transcript, self.context.policy, ())
            * self.measurement.token_ratio
        )

    @property
    def opens_turn(self) -> bool:
        """Whether it answers the user, not a tool."""
        return not self.transcript.entries or self.transcript.entries[-1].role != "tool"

    @property
    def log_fields(self) -> dict[str, Any]:
        """For the log: how the measure came about."""
        return {
            "estimate": estimate_transcript(self.transcript, self.context.policy),
            "last_known": self.last_usage.tokens if self.last_usage else None,
            "messages": len(self.transcript.entries),
        }


def measure_request(context: SessionContext, request: Any) -> MeasuredRequest:
    """Measure a built request, its files cut to their share, corrected by what the provider last counted."""
    backend, request = backend_registry.get_backend(), attachments.fit_attachments(context, request)
    parsed_request = backend.parse_request(
        request, backend.load_last_usage(context.facts), family=context.facts.family
    )
    transcript = count_entry_tokens(
        session_context.drop_foreign_counts(parsed_request.transcript, context.policy),
        context.policy,
    )
    measurement = session_context.measure_transcript(context, transcript, parsed_request.last_usage)
    return MeasuredRequest(
        context=context,
        request=request,
        transcript=transcript,
        measurement=measurement,
        last_usage=parsed_request.last_usage,
    )


def remeasure_request(session: Any, previous_request: MeasuredRequest) -> MeasuredRequest:
    """The same request, built anew from storage after something was done."""
    return measure_request(
        session_context.load_session_context(session.pk) or previous_request.context,
        backend_registry.get_backend().rebuild_request(session, previous_request.request),
    )
