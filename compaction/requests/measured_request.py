"""Measure a built request against the budget of its session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from chatcore.context import recalled
from chatcore.models import Session
from chatcore.providers.base import Request
from chatcore.providers.errors import ContextBudgetExceeded
from compaction.core.estimate import LastUsage, Measurement, estimate_transcript
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit, shorten_results_to_fit
from compaction.models import CompactionRun
from compaction.sessions import built_requests, request_size, session_context
from compaction.sessions.built_requests import parse_request, rebuild_request
from compaction.sessions.decision_log import Action, is_logged, log_decision
from compaction.sessions.session_context import SessionContext


class LogFields(TypedDict):
    """How a measurement was made, for the log of decisions; sizes in tokens."""

    estimate: int
    last_known: int | None
    messages: int


class TrimLimits(TypedDict):
    """How small a request is to be made; sizes in tokens."""

    limit_tokens: int
    overhead_tokens: int
    token_ratio: float


@dataclass(frozen=True, kw_only=True)
class MeasuredRequest:
    """A built request and its size; `last_usage` is the provider's count that corrected it."""

    context: SessionContext
    request: Request
    transcript: Transcript
    measurement: Measurement
    last_usage: LastUsage | None

    @property
    def window(self) -> int:
        """Return the most tokens that the provider takes; 0 if the context window is unknown."""
        return self.context.budget.request_limit if self.context.budget else 0

    @property
    def is_over_window(self) -> bool:
        """Return True if the provider would probably refuse the request, or cut its answer."""
        return self.measurement.tokens > self.window - request_size.find_answer_space(self.context)

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
    def has_oversized_message(self) -> bool:
        """Return True if the newest message alone is larger than the window."""
        return self.newest_tokens > self.window

    @property
    def overhead_tokens(self) -> int:
        """Return the size of everything around the messages, in the provider's tokens."""
        estimate = estimate_transcript(self.transcript, self.context.policy, ())
        return int(estimate * self.measurement.token_ratio)

    def build_trim_limits(self, limit_tokens: int) -> TrimLimits:
        """Return the sizes by which the request is trimmed."""
        return {
            "limit_tokens": limit_tokens,
            "overhead_tokens": self.overhead_tokens,
            "token_ratio": self.measurement.token_ratio,
        }

    def drop_oldest(
        self, limit_tokens: int, entries: Sequence[TranscriptEntry] | None = None
    ) -> Sequence[TranscriptEntry]:
        """Return the newest messages of the request, or of `entries`, that fit.

        Where the newest calls with their results are too large, the results are shortened.
        """
        limits = self.build_trim_limits(limit_tokens)
        entries = self.transcript.entries if entries is None else entries
        return shorten_results_to_fit(drop_oldest_to_fit(entries, **limits), **limits)

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


def measure_request(context: SessionContext, request: Request) -> MeasuredRequest:
    """Shorten the files of a built request to their share, and measure it.

    The estimate is corrected by what the provider last counted. What the turn brought back from
    before the boundary is the first to go when the request is too large.
    """
    measured_request = _measure_complete_request(context, request)
    if not measured_request.is_too_large:
        return measured_request
    smaller_request = recalled.remove_block(request)
    if smaller_request is request:
        return measured_request
    return _measure_complete_request(context, smaller_request)


def _measure_complete_request(context: SessionContext, request: Request) -> MeasuredRequest:
    fitted_request = built_requests.fit_attachments(context, request)
    parsed_request = parse_request(
        fitted_request, context.facts.last_usage, family=context.facts.model.family
    )
    # Counts that are stored are used where the policy counts alike, which saves counting
    # again.
    transcript = request_size.recount_transcript(parsed_request.transcript, context.policy)
    measurement = request_size.measure_transcript(context, transcript, parsed_request.last_usage)
    return MeasuredRequest(
        context=context,
        request=fitted_request,
        transcript=transcript,
        measurement=measurement,
        last_usage=parsed_request.last_usage,
    )


def remeasure_request(session: Session, previous_request: MeasuredRequest) -> MeasuredRequest:
    """Build the request again from storage, after something was done, and measure it."""
    context = session_context.load_session_context(session.pk) or previous_request.context
    request = rebuild_request(session, previous_request.request)
    return measure_request(context, request)


def build_oversize_refusal(measured_request: MeasuredRequest) -> ContextBudgetExceeded:
    """Return the error of a newest message that is larger than the window, and what helps."""
    detail = (
        f"The newest message alone has about {measured_request.newest_tokens:,} tokens; "
        f"{measured_request.context.facts.model.name} takes at most {measured_request.window:,}."
        " Shorten it or choose a model with a larger window."
    )
    return ContextBudgetExceeded(
        detail, tokens=measured_request.newest_tokens, window=measured_request.window
    )


def log_request_decision(
    measured_request: MeasuredRequest,
    action: Action,
    *,
    trigger: str = CompactionRun.Trigger.BEFORE_REQUEST,
) -> None:
    """Write what is done about a request before it is sent to the log of decisions."""
    if not is_logged(measured_request.context, trigger=trigger, action=action):
        return
    log_decision(
        measured_request.context,
        trigger=trigger,
        tokens=measured_request.measurement.tokens,
        action=action,
        **measured_request.log_fields,
    )
