"""How many tokens the next request takes: estimated by the policy's own rule, corrected by what the provider last counted."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from compaction.core.counting import build_counter
from compaction.core.policy import Policy
from compaction.core.transcript import Transcript, TranscriptEntry

# The plain estimate, FEAT-011's Token Counting Rules. Chatcore cannot import this and has its own in
# sessions/token_estimate.py, as the page has in js/token_estimate.js; one test holds them equal.
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class LastUsage:
    """What the provider counted in the last call on this context: `tokens` in and out, `input` alone, and the seq of its answer."""

    tokens: int
    after_seq: int
    input: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """The size of the next request in tokens, and `scale`: how many real tokens an estimated one stands for, at least 1."""

    tokens: int
    source: Literal["provider", "estimated"] = "estimated"
    token_ratio: float = 1.0


def estimate_characters(characters: int, policy: Policy, family: str = "") -> int:
    """Tokens of a text of so many characters. Under oneclaw one for four, rounded down, at least one (FEAT-011, Token Counting Rules)."""
    return build_counter(policy, family).count_characters(characters)


def estimate_text(text: str, policy: Policy, family: str = "", *, is_code: bool = False) -> int:
    """Tokens of a text in hand; `code`: all of it is code, else what stands in fences."""
    return build_counter(policy, family).count_text(text, is_code=is_code)


def estimate_summary(summary: str | None, policy: Policy, family: str = "") -> int:
    """Tokens of a summary, none for none."""
    return estimate_text(summary, policy, family) if summary else 0


def estimate_overhead(transcript: Transcript, policy: Policy) -> int:
    """Tokens of what every request sends besides the messages and the summary, as far as the policy counts it."""
    token_counter, tokens = (
        build_counter(policy, transcript.family),
        transcript.overhead_tokens + policy.estimate.per_conversation,
    )
    if transcript.system and policy.estimate.count_system:
        tokens += token_counter.count_text(transcript.system)
    if transcript.tools and policy.estimate.count_tools:
        tokens += token_counter.count_characters(len(transcript.tools), ignore_factor=True)
    return tokens


def count_entry_tokens(transcript: Transcript, policy: Policy) -> Transcript:
    """The same transcript with every entry counted; entries that come counted stay the objects they are."""
    if all(entry.tokens for entry in transcript.entries):
        return transcript
    token_counter = build_counter(policy, transcript.family)
    return replace(
        transcript,
        entries=tuple(
            e if e.tokens else replace(e, tokens=token_counter.count_entry(e))
            for e in transcript.entries
        ),
    )


def estimate_transcript(
    transcript: Transcript, policy: Policy, entries: Iterable[TranscriptEntry] | None = None
) -> int:
    """Estimated tokens of what would be sent: overhead, summary, and the entries (all of them, or those given)."""
    token_counter = build_counter(policy, transcript.family)
    message_tokens = sum(
        entry.tokens or token_counter.count_entry(entry)
        for entry in (transcript.entries if entries is None else entries)
    )
    return (
        estimate_overhead(transcript, policy)
        + estimate_summary(transcript.summary, policy, transcript.family)
        + message_tokens
    )


def measure(
    transcript: Transcript, policy: Policy, last_usage: LastUsage | None = None
) -> Measurement:
    """Measure what would be sent next. `last_usage` must come from a call on this very context (same model, same version), else None.

    The provider's count stands for all up to its answer; what came after is estimated and added. Counts are never summed over calls.
    Under `max` the bare count of the last input is taken where it is larger than the estimate (Wolffish, Layer 2).
    """
    transcript = count_entry_tokens(transcript, policy)
    total_estimate = estimate_transcript(transcript, policy)
    if last_usage is None or last_usage.tokens <= 0 or policy.estimate.calibration == "none":
        return Measurement(tokens=total_estimate)
    prior_estimate = estimate_transcript(
        transcript,
        policy,
        (entry for entry in transcript.entries if entry.seq <= last_usage.after_seq),
    )
    measurement = calibrate_estimate(
        policy,
        total_estimate=total_estimate,
        newer_estimate=total_estimate - prior_estimate,
        last_usage=last_usage,
    )
    token_ratio = (
        measurement.tokens / max(1, total_estimate)
        if policy.estimate.calibration == "max"
        else last_usage.tokens / max(1, prior_estimate)
    )
    return replace(measurement, token_ratio=max(1.0, token_ratio))


def calibrate_estimate(
    policy: Policy, *, total_estimate: int, newer_estimate: int, last_usage: LastUsage
) -> Measurement:
    """The estimate of the whole request and of what came after the last call, corrected by that call's count as the policy says."""
    calibration = policy.estimate.calibration
    usage_tokens = (
        (last_usage.input or last_usage.tokens)
        if calibration == "max"
        else last_usage.tokens + newer_estimate
    )
    if calibration == "none" or (
        calibration in ("max", "floor") and total_estimate >= usage_tokens
    ):
        return Measurement(tokens=total_estimate)
    return Measurement(tokens=usage_tokens, source="provider")
