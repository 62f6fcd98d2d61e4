"""Before a request, and after an overflow: make it fit. What CHATCORE["CONTEXT_GUARD"] names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compaction import backends, endings, engine, situation
from compaction.core.estimate import Measure, estimated, weigh
from compaction.core.transcript import Entry, Transcript
from compaction.core.trim import drop_oldest
from compaction.decisions import Action, decided
from compaction.models import CompactionRun, SessionState
from compaction.situation import Situation

Trigger = CompactionRun.Trigger


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """A session's next request, as built, and how large it is."""

    now: Situation
    request: Any
    transcript: Transcript
    measure: Measure

    @property
    def window(self) -> int:
        return self.now.budget.window if self.now.budget else 0

    @property
    def too_large(self) -> bool:
        """Over the window; or over the threshold when the last run failed. FEAT-011, Failure Handling Rules."""
        over = bool(self.now.budget and self.now.budget.over(self.measure.tokens))
        return self.measure.tokens > self.window or (self.now.state.trimming and over)

    def kept(self) -> Sequence[Entry]:
        """The messages that would be sent: all, or the newest that fit under the threshold."""
        if not self.too_large or self.now.budget is None:
            return self.transcript.entries
        overhead = int(self.transcript.overhead_tokens * self.measure.scale)
        limit = self.now.budget.threshold
        return drop_oldest(self.transcript.entries, limit_tokens=limit, overhead=overhead, scale=self.measure.scale)


class ContextGuard:
    """Decides what is done about a request that may not fit. Keeps nothing between calls: what it learns is stored."""

    def before_request(self, session: Any, request: Any) -> Any:
        """The host's Fit. A request over the window is compacted first, then trimmed if it must be; one that fits goes out unchanged.

        Raises the host's overflow error, before any call, when the newest message alone is larger than the window.
        """
        now = situation.of(session.pk)
        if now is None or now.automatic == "off":
            return backends.get().fit(request, version=session.context_version)
        reading = read(now, request)
        refuse_the_impossible(reading)
        trigger = trigger_for(reading)
        if trigger and may_run(now):
            decided(now, trigger=trigger, tokens=reading.measure.tokens, action="compact")
            engine.compact_now(session.pk, trigger=trigger)
            reading = read(situation.of(session.pk) or now, backends.get().rebuild(session, request))
        return trimmed(reading, session.context_version)

    def after_overflow(self, session: Any, error: Any) -> bool:
        """Make room after a provider's refusal, taking its numbers for true; True when the next request will be smaller."""
        now = situation.of(session.pk)
        if now is None or now.automatic == "off":
            return False
        refused = read(now, backends.get().rebuild(session))
        sent = refused.kept()
        learn(now, sent, tokens=error.tokens, window=error.window)
        if may_run(now):
            decided(now, trigger=Trigger.ON_OVERFLOW, tokens=error.tokens or refused.measure.tokens, action="compact")
            if engine.compact_now(session.pk, trigger=Trigger.ON_OVERFLOW).status == CompactionRun.Status.APPLIED:
                return True
        reading = read(situation.of(session.pk) or now, backends.get().rebuild(session))
        return len(reading.kept()) < len(sent)


def read(now: Situation, request: Any) -> _Reading:
    """Measure a built request, corrected by what the provider last counted."""
    backend = backends.get()
    draft = backend.read(request, backend.last_usage(now.subject))
    transcript = weigh(situation.recounted(draft.transcript, now.policy), now.policy)
    return _Reading(now=now, request=request, transcript=transcript, measure=situation.full_measure(now, transcript, draft.usage))


def trigger_for(reading: _Reading) -> str | None:
    """Why to compact before sending, if at all: over the window whatever the policy's phases, over the threshold where they say so."""
    subject, policy, budget = reading.now.subject, reading.now.policy, reading.now.budget
    if budget is None or not (budget.over(reading.measure.tokens) or reading.measure.tokens > budget.window):
        return None
    changed = backends.get().last_model(subject) not in ("", subject.model)
    if changed and Trigger.ON_MODEL_CHANGE in policy.trigger.phases:
        return Trigger.ON_MODEL_CHANGE
    if reading.measure.tokens > budget.window or Trigger.BEFORE_REQUEST in policy.trigger.phases:
        return Trigger.BEFORE_REQUEST
    return None


def may_run(now: Situation) -> bool:
    """Whether an automatic run may start: not while a failure makes it wait, nor once two gained nothing. A rewind holds none back here."""
    return not now.state.stopped and not now.state.waiting


def refuse_the_impossible(reading: _Reading) -> None:
    """The one thing an estimate may refuse: a newest message larger than the whole window."""
    newest = reading.transcript.entries[-1].tokens if reading.transcript.entries else 0
    if newest > reading.window:
        decided(reading.now, trigger=Trigger.BEFORE_REQUEST, tokens=reading.measure.tokens, action="refuse")
        detail = (
            f"The newest message alone has about {newest:,} tokens; "
            f"the context window of {reading.now.subject.model} is {reading.window:,}. Shorten it or choose a model with a larger window."
        )
        raise backends.get().overflow(detail, tokens=newest, window=reading.window)


def trimmed(reading: _Reading, version: int) -> Any:
    """The request, without its oldest messages where it is too large. The stored conversation stays as it is."""
    backend, entries, kept = backends.get(), reading.transcript.entries, reading.kept()
    action: Action = "none" if len(kept) == len(entries) else "trim"
    decided(reading.now, trigger=Trigger.BEFORE_REQUEST, tokens=reading.measure.tokens, action=action)
    if action == "none":
        return backend.fit(reading.request, version=version)
    if not reading.now.state.trimming:
        endings.trimmed(reading.now)
    request = backend.keep(reading.request, {entry.seq for entry in kept})
    return backend.fit(request, version=None, notices=(reading.now.policy.fallback.notice,))


def learn(now: Situation, sent: Sequence[Entry], *, tokens: int | None, window: int | None) -> None:
    """Store what a refusal told of the true sizes. Without numbers: what was sent has more tokens than the window."""
    budget = now.budget
    estimate = situation.fixed_tokens(now) + estimated(Transcript(entries=tuple(sent)), now.policy)
    known = now.state.learned_scale if now.learned else 1.0
    true_window = min(window or budget.window, budget.window) if budget else 0
    scale = max(known, (tokens or true_window + 1) / max(1, estimate))
    numbers = {"learned_for": situation.learned_key(now.subject), "learned_scale": scale, "learned_window": true_window}
    SessionState.objects.update_or_create(session_id=now.subject.session_id, defaults=numbers)
