"""A built request, measured against the budget of its session."""

from dataclasses import dataclass
from typing import Any

from compaction.backends import registry as backend_registry
from compaction.core.estimate import LastUsage, Measure, estimated, weigh
from compaction.core.transcript import Transcript
from compaction.requests import attachments
from compaction.sizing import session_context
from compaction.sizing.session_context import Situation


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A session's next request, as built, and how large it is. `usage`: what it was corrected by."""

    now: Situation
    request: Any
    transcript: Transcript
    measure: Measure
    usage: LastUsage | None

    @property
    def window(self) -> int:
        """In tokens; 0 where it is unknown, and then nothing here applies."""
        return self.now.budget.window if self.now.budget else 0

    @property
    def over_window(self) -> bool:
        """Whether the provider would refuse it, as far as we know."""
        return self.measure.tokens > self.window

    @property
    def over_threshold(self) -> bool:
        """Whether there is reason to compact."""
        return bool(self.now.budget and self.now.budget.over(self.measure.tokens))

    @property
    def too_large(self) -> bool:
        """Over the window; or over the threshold when the last run failed. FEAT-011, Failure Handling Rules."""
        return self.over_window or (self.now.state.trimming and self.over_threshold)

    @property
    def overhead(self) -> int:
        """Real tokens of what stands around the messages."""
        return int(estimated(self.transcript, self.now.policy, ()) * self.measure.scale)

    @property
    def opens_a_turn(self) -> bool:
        """Whether it answers the user, not a tool."""
        return not self.transcript.entries or self.transcript.entries[-1].role != "tool"

    @property
    def figures(self) -> dict[str, Any]:
        """For the log: how the measure came about."""
        return {
            "estimate": estimated(self.transcript, self.now.policy),
            "last_known": self.usage.tokens if self.usage else None,
            "messages": len(self.transcript.entries),
        }


def read(now: Situation, request: Any) -> Reading:
    """Measure a built request, its files cut to their share, corrected by what the provider last counted."""
    backend, request = backend_registry.get(), attachments.fitted(now, request)
    draft = backend.read(request, backend.last_usage(now.subject), family=now.subject.family)
    transcript = weigh(session_context.recounted(draft.transcript, now.policy), now.policy)
    measured = session_context.full_measure(now, transcript, draft.usage)
    return Reading(
        now=now, request=request, transcript=transcript, measure=measured, usage=draft.usage
    )


def read_again(session: Any, before: Reading) -> Reading:
    """The same request, built anew from storage after something was done."""
    return read(
        session_context.of(session.pk) or before.now,
        backend_registry.get().rebuild(session, before.request),
    )
