"""How many tokens the next request takes: estimated by the policy's own rule, corrected by what the provider last counted."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from compaction.core.counting import counter
from compaction.core.policy import Policy
from compaction.core.transcript import Entry, Transcript


@dataclass(frozen=True, kw_only=True, slots=True)
class LastUsage:
    """What the provider counted in the last call on this context: `tokens` in and out, `input` alone, and the seq of its answer."""

    tokens: int
    after_seq: int
    input: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """The size of the next request in tokens, and `scale`: how many real tokens an estimated one stands for, at least 1."""

    tokens: int
    source: Literal["provider", "estimated"] = "estimated"
    scale: float = 1.0


def tokens_of(characters: int, policy: Policy, family: str = "") -> int:
    """Tokens of a text of so many characters. Under oneclaw one for four, rounded down, at least one (FEAT-011, Token Counting Rules)."""
    return counter(policy, family).characters(characters)


def text_tokens(text: str, policy: Policy, family: str = "", *, code: bool = False) -> int:
    """Tokens of a text in hand; `code`: all of it is code, else what stands in fences."""
    return counter(policy, family).text(text, code=code)


def summary_tokens(summary: str | None, policy: Policy, family: str = "") -> int:
    """Tokens of a summary, none for none."""
    return text_tokens(summary, policy, family) if summary else 0


def overhead(transcript: Transcript, policy: Policy) -> int:
    """Tokens of what every request sends besides the messages and the summary, as far as the policy counts it."""
    count, tokens = (
        counter(policy, transcript.family),
        transcript.overhead_tokens + policy.estimate.per_conversation,
    )
    if transcript.system and policy.estimate.count_system:
        tokens += count.text(transcript.system)
    if transcript.tools and policy.estimate.count_tools:
        tokens += count.characters(len(transcript.tools), bare=True)
    return tokens


def weigh(transcript: Transcript, policy: Policy) -> Transcript:
    """The same transcript with every entry counted; entries that come counted stay the objects they are."""
    if all(entry.tokens for entry in transcript.entries):
        return transcript
    count = counter(policy, transcript.family)
    return replace(
        transcript,
        entries=tuple(
            e if e.tokens else replace(e, tokens=count.entry(e)) for e in transcript.entries
        ),
    )


def estimated(
    transcript: Transcript, policy: Policy, entries: Iterable[Entry] | None = None
) -> int:
    """Estimated tokens of what would be sent: overhead, summary, and the entries (all of them, or those given)."""
    count = counter(policy, transcript.family)
    spoken = sum(
        entry.tokens or count.entry(entry)
        for entry in (transcript.entries if entries is None else entries)
    )
    return (
        overhead(transcript, policy)
        + summary_tokens(transcript.summary, policy, transcript.family)
        + spoken
    )


def measure(transcript: Transcript, policy: Policy, last_usage: LastUsage | None = None) -> Measure:
    """Measure what would be sent next. `last_usage` must come from a call on this very context (same model, same version), else None.

    The provider's count stands for all up to its answer; what came after is estimated and added. Counts are never summed over calls.
    Under `max` the bare count of the last input is taken where it is larger than the estimate (Wolffish, Layer 2).
    """
    transcript = weigh(transcript, policy)
    whole = estimated(transcript, policy)
    if last_usage is None or last_usage.tokens <= 0 or policy.estimate.calibration == "none":
        return Measure(tokens=whole)
    seen = estimated(
        transcript, policy, (e for e in transcript.entries if e.seq <= last_usage.after_seq)
    )
    counted = calibrated(policy, whole=whole, unseen=whole - seen, last_usage=last_usage)
    scale = (
        counted.tokens / max(1, whole)
        if policy.estimate.calibration == "max"
        else last_usage.tokens / max(1, seen)
    )
    return replace(counted, scale=max(1.0, scale))


def calibrated(policy: Policy, *, whole: int, unseen: int, last_usage: LastUsage) -> Measure:
    """The estimate of the whole request and of what came after the last call, corrected by that call's count as the policy says."""
    kind = policy.estimate.calibration
    counted = (
        (last_usage.input or last_usage.tokens) if kind == "max" else last_usage.tokens + unseen
    )
    if kind == "none" or (kind in ("max", "floor") and whole >= counted):
        return Measure(tokens=whole)
    return Measure(tokens=counted, source="provider")
