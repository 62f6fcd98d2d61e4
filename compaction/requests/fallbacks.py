"""A request that is too large, when no run will make it smaller: what the policy's fallback does to it. Nothing stored changes."""

from collections.abc import Sequence
from typing import Any

from compaction.backends import registry as backend_registry
from compaction.core.transcript import Entry
from compaction.core.trimming import drop_oldest, slide
from compaction.models import CompactionRun
from compaction.requests.measured_request import Reading
from compaction.runs import lifecycle
from compaction.sizing.decision_log import decided


def kept(reading: Reading) -> Sequence[Entry]:
    """The messages that would be sent: all, or those that the fallback leaves."""
    kind = reading.now.policy.fallback.kind
    if not reading.too_large or reading.now.budget is None or kind == "error":
        return reading.transcript.entries
    return (
        _slid(reading)
        if kind == "slide_window"
        else _oldest_dropped(reading, reading.transcript.entries)
    )


def fitted(reading: Reading, version: int) -> Any:
    """The host's answer for a request that is about to be sent: whole where it fits.

    Raises the host's overflow error where it is over the window and the policy wants an error for that.
    """
    backend, trigger, tokens = (
        backend_registry.get(),
        CompactionRun.Trigger.BEFORE_REQUEST,
        reading.measure.tokens,
    )
    entries, left = reading.transcript.entries, kept(reading)
    if len(left) == len(entries):
        if reading.over_window and reading.now.policy.fallback.kind == "error":
            raise _refused(reading)
        decided(reading.now, trigger=trigger, tokens=tokens, action="none", **reading.figures)
        return backend.fit(reading.request, version=version)
    decided(reading.now, trigger=trigger, tokens=tokens, action="trim", **reading.figures)
    if not reading.now.state.trimming:
        lifecycle.trimmed(reading.now)
    return backend.fit(_said(reading, left), version=None, notices=notices(reading))


def notices(reading: Reading) -> tuple[str, ...]:
    """What the user is told of a request that holds less than the conversation."""
    fallback = reading.now.policy.fallback
    return (fallback.notice,) if fallback.notify else ()


def _slid(reading: Reading) -> Sequence[Entry]:
    """What the window shows after it slid; where that alone does not do, without the oldest of it."""
    assert reading.now.budget is not None
    policy, scale = reading.now.policy, reading.measure.scale
    left = slide(
        reading.transcript.entries,
        limit_tokens=reading.now.budget.threshold,
        first=policy.protect.first,
        fraction=policy.slide.fraction,
        overhead=reading.overhead,
        scale=scale,
    )
    return _oldest_dropped(reading, left)


def _oldest_dropped(reading: Reading, entries: Sequence[Entry]) -> Sequence[Entry]:
    assert reading.now.budget is not None
    return drop_oldest(
        entries,
        limit_tokens=reading.now.budget.threshold,
        overhead=reading.overhead,
        scale=reading.measure.scale,
    )


def _said(reading: Reading, left: Sequence[Entry]) -> Any:
    """The request with what is left, and with what the model is told of what is not."""
    backend, policy = backend_registry.get(), reading.now.policy
    request = backend.keep(reading.request, {entry.seq for entry in left})
    words = {"slide_window": policy.slide.marker, "notice": policy.inject.failure_nudge}.get(
        policy.fallback.kind, ""
    )
    return backend.with_system(request, words) if words else request


def _refused(reading: Reading) -> Exception:
    decided(
        reading.now,
        trigger=CompactionRun.Trigger.BEFORE_REQUEST,
        tokens=reading.measure.tokens,
        action="refuse",
        **reading.figures,
    )
    detail = (
        f"The conversation has about {reading.measure.tokens:,} tokens and could not be compacted; "
        f"the context window of {reading.now.subject.model} is {reading.window:,}."
    )
    return backend_registry.get().overflow(
        detail, tokens=reading.measure.tokens, window=reading.window
    )
