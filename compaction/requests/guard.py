"""Before a request, and after an overflow: make it fit. What CHATCORE["CONTEXT_GUARD"] names."""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from compaction.backends import registry as backend_registry
from compaction.core.estimate import estimated
from compaction.core.transcript import Entry, Transcript
from compaction.models import OPEN, CompactionRun, SessionState, open_run_of
from compaction.requests import attachments, fallbacks, stateless
from compaction.requests.measured_request import Reading, read, read_again
from compaction.requests.runtime_hint import hinted
from compaction.runs import engine
from compaction.sizing import calibration, session_context
from compaction.sizing.decision_log import decided
from compaction.sizing.session_context import NoSuchSession, Situation
from compaction.triggers import on_change

Trigger = CompactionRun.Trigger

PATIENCE = 2.0  # seconds that a run may stay queued before whoever waits for it works on it


class ContextGuard:
    """Decides what is done about a request that may not fit. Keeps nothing between calls: what it learns is stored."""

    def before_request(self, session: Any, request: Any) -> Any:
        """The host's Fit. A request that is too large is compacted first where the policy's phases say so, then trimmed if it must be.

        Raises the host's overflow error, before any call, when the newest message alone is larger than the window, or when the
        request is and the policy's fallback is an error.
        """
        now = session_context.of(session.pk)
        if now is None or now.automatic == "off":
            return backend_registry.get().fit(
                hinted(now, attachments.fitted(now, request)) if now else request,
                version=session.context_version,
            )
        reading = read(now, request)
        if wait_for_the_open_run(reading):
            reading = read_again(session, reading)
        refuse_the_impossible(reading)
        trigger = trigger_for(reading)
        if trigger and may_run(reading.now):
            decided(
                reading.now,
                trigger=trigger,
                tokens=reading.measure.tokens,
                action="compact",
                **reading.figures,
            )
            engine.compact_now(session.pk, trigger=trigger)
            reading = read_again(session, reading)
        hinting = replace(reading, request=hinted(reading.now, reading.request))
        return fallbacks.fitted(hinting, session.context_version)

    def forget(self, session: Any, seqs: Collection[int]) -> None:
        """Messages are being deleted, in the open transaction: nothing that was written of them stays; then measure anew."""
        on_change.forget(session.pk, seqs)

    def uncovered(self, session: Any, seqs: Collection[int]) -> None:
        """Messages are superseded or come back, in the open transaction: what was made of them beside a summary goes too."""
        on_change.uncovered(session.pk, seqs)

    def forked(self, source: Any, made: Any, last_seq: int) -> None:
        """A session was made of another's messages up to a seq, in the open transaction: it gets what is kept beside the summary."""
        on_change.forked(source.pk, made.pk, last_seq=last_seq)

    def after_overflow(self, session: Any, request: Any, error: Any) -> bool:
        """Make room after a provider's refusal, taking its numbers for true; True when the next request will be smaller.

        `request`: what was refused; it tells which tools are offered, those of the client's too.
        """
        now = session_context.of(session.pk)
        if now is None or now.automatic == "off":
            return False
        refused = read(now, backend_registry.get().rebuild(session, request))
        sent = fallbacks.kept(refused)
        learn(now, sent, tokens=error.tokens, window=error.window)
        tokens = error.tokens or refused.measure.tokens
        if Trigger.ON_OVERFLOW in now.policy.trigger.phases and may_run(now):
            decided(
                now,
                trigger=Trigger.ON_OVERFLOW,
                tokens=tokens,
                action="compact",
                force=True,
                **refused.figures,
            )
            if (
                engine.compact_now(session.pk, trigger=Trigger.ON_OVERFLOW).status
                == CompactionRun.Status.APPLIED
            ):
                return True
        else:
            decided(
                now, trigger=Trigger.ON_OVERFLOW, tokens=tokens, action="held", **refused.figures
            )
        reading = read_again(session, refused)
        return len(fallbacks.kept(reading)) < len(sent)

    def size(self, session: Any) -> int:
        """Tokens of the session's next request, measured without reading a message; 0 when it is gone."""
        now = session_context.of(session.pk)
        return session_context.quick_measure(now).tokens if now else 0

    def fit(self, model: Any, request: Any, *, refused: Any = None) -> Any:
        """As `stateless.fit` says."""
        return stateless.fit(model, request, refused=refused)

    def learn(self, model: Any, request: Any, tokens: int) -> None:
        """As `stateless.learn` says."""
        stateless.learn(model, request, tokens)


def wait_for_the_open_run(reading: Reading) -> bool:
    """Whether a new turn had to wait for a run, as flow.while_compacting says: until that ended, at most flow.lease_seconds.

    No connection is held meanwhile, and a canceled turn waits no longer. A run that nobody takes is worked on here. Lota, Compaction Queue.
    """
    now, flow = reading.now, reading.now.policy.flow
    run = (
        open_run_of(now.subject.session_id)
        if flow.while_compacting == "wait" and reading.opens_a_turn
        else None
    )
    if run is None:
        return False
    decided(
        now,
        trigger=Trigger.BEFORE_REQUEST,
        tokens=reading.measure.tokens,
        action="wait",
        **reading.figures,
    )
    deadline = time.monotonic() + flow.lease_seconds
    try:
        while run.status in OPEN and (left := deadline - time.monotonic()) > 0 and _wanted(now):
            run = engine.awaited(run, seconds=min(left, PATIENCE), wanted=lambda: _wanted(now))
            if run.status in OPEN and deadline - time.monotonic() > 0 and _wanted(now):
                run = engine.execute_run(run.pk, in_turn=True) or run
    except NoSuchSession:
        return False
    return True


def _wanted(now: Situation) -> bool:
    return backend_registry.get().answering(now.subject)


def trigger_for(reading: Reading) -> str | None:
    """Why to compact before sending, if at all: over the threshold where the policy's phases say so.

    A request over the window is an overflow foreseen: a policy that compacts on those compacts on this too.
    """
    phases = reading.now.policy.trigger.phases
    if not (reading.over_threshold or reading.over_window):
        return None
    changed = backend_registry.get().last_model(reading.now.subject) not in (
        "",
        reading.now.subject.model,
    )
    if changed and Trigger.ON_MODEL_CHANGE in phases:
        return Trigger.ON_MODEL_CHANGE
    if Trigger.BEFORE_REQUEST in phases or (reading.over_window and Trigger.ON_OVERFLOW in phases):
        return Trigger.BEFORE_REQUEST
    return None


def may_run(now: Situation) -> bool:
    """Whether an automatic run may start: not while a failure makes it wait, nor once two gained nothing. A rewind holds none back here."""
    return not now.state.stopped and not now.state.waiting


def refuse_the_impossible(reading: Reading) -> None:
    """The one thing an estimate may refuse: a newest message larger than the whole window."""
    newest = reading.transcript.entries[-1].tokens if reading.transcript.entries else 0
    if newest > reading.window:
        decided(
            reading.now,
            trigger=Trigger.BEFORE_REQUEST,
            tokens=reading.measure.tokens,
            action="refuse",
            **reading.figures,
        )
        detail = (
            f"The newest message alone has about {newest:,} tokens; "
            f"the context window of {reading.now.subject.model} is {reading.window:,}. Shorten it or choose a model with a larger window."
        )
        raise backend_registry.get().overflow(detail, tokens=newest, window=reading.window)


def learn(now: Situation, sent: Sequence[Entry], *, tokens: int | None, window: int | None) -> None:
    """Store what a refusal told of the true sizes. Without numbers: what was sent has more tokens than the window."""
    budget = now.budget
    estimate = session_context.fixed_tokens(now) + estimated(
        Transcript(entries=tuple(sent)), now.policy
    )
    known = now.state.learned_scale if now.learned else 1.0
    true_window = min(window or budget.window, budget.window) if budget else 0
    scale = max(known, (tokens or true_window + 1) / max(1, estimate))
    numbers = {
        "learned_for": session_context.learned_key(now.subject),
        "learned_scale": scale,
        "learned_window": true_window,
    }
    SessionState.objects.update_or_create(session_id=now.subject.session_id, defaults=numbers)
    calibration.learn_refusal(now.subject.model, registered=now.subject.window, window=window)
