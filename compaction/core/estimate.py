"""The size of the next request: the policy's estimate, corrected by what the provider counted.

For example, the last call was counted at 5,000 tokens with its answer, where the policy estimates
4,000; since then messages of 300 estimated tokens were added. Under `last_usage` the next request
takes 5,000 + 300 tokens, and one estimated token stands for 5,000 / 4,000 = 1.25 real ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from compaction.core.counter import TokenCounter, compute_factor
from compaction.core.policy import Policy
from compaction.core.transcript import Transcript, TranscriptEntry, change_entry


def build_counter(policy: Policy, family: str = "") -> TokenCounter:
    """Return the policy's counter for models of a family.

    Under `oneclaw` a token is four characters, rounded down, and a text that is not empty has one
    at least.
    """
    knobs = policy.estimate
    family_multiplier = knobs.family_multiplier.get(family, 1)
    return TokenCounter(knobs, compute_factor(family_multiplier, knobs.safety_multiplier))


@dataclass(frozen=True, kw_only=True, slots=True)
class LastUsage:
    """What the provider counted in the last call on this context, in tokens."""

    tokens: int
    """Input and output together."""
    after_seq: int
    """The seq of the answer."""
    input: int = 0
    """The input alone; 0 if it is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """The size of the next request in tokens, and where the number comes from."""

    tokens: int
    source: Literal["provider", "estimated"] = "estimated"
    token_ratio: float = 1.0
    """How many real tokens one estimated token stands for, at least 1."""


def estimate_summary(summary: str | None, policy: Policy) -> int:
    """Return the tokens of a summary, 0 without one."""
    return build_counter(policy).count_text(summary) if summary else 0


def count_entry_tokens(transcript: Transcript, policy: Policy) -> Transcript:
    """Return the transcript with every entry counted. Counted entries stay the same objects."""
    if all(entry.tokens for entry in transcript.entries):
        return transcript
    token_counter = build_counter(policy, transcript.family)
    entries = tuple(
        entry if entry.tokens else change_entry(entry, tokens=token_counter.count_entry(entry))
        for entry in transcript.entries
    )
    return replace(transcript, entries=entries)


def estimate_transcript(
    transcript: Transcript, policy: Policy, entries: Iterable[TranscriptEntry] | None = None
) -> int:
    """Return the estimated tokens of a request: overhead, summary and entries.

    `entries` replaces those of the transcript.
    """
    token_counter = build_counter(policy, transcript.family)
    message_tokens = sum(
        entry.tokens or token_counter.count_entry(entry)
        for entry in (transcript.entries if entries is None else entries)
    )
    summary_tokens = token_counter.count_text(transcript.summary) if transcript.summary else 0
    return token_counter.count_overhead(transcript) + summary_tokens + message_tokens


def measure(
    transcript: Transcript, policy: Policy, last_usage: LastUsage | None = None
) -> Measurement:
    """Measure the next request.

    `last_usage` must come from a call on this very context (same model, same version); else pass
    None. The provider's count stands for everything up to its answer; what came after is estimated
    and added. Counts of several calls are never added up: each already includes the history.
    """
    transcript = count_entry_tokens(transcript, policy)
    total_estimate = estimate_transcript(transcript, policy)
    if last_usage is None or last_usage.tokens <= 0 or policy.estimate.calibration == "none":
        return Measurement(tokens=total_estimate)
    # The system prompt, the tools and the summary were part of that call too.
    prior_entries = (entry for entry in transcript.entries if entry.seq <= last_usage.after_seq)
    prior_estimate = estimate_transcript(transcript, policy, prior_entries)
    measurement = calibrate_estimate(
        policy,
        total_estimate=total_estimate,
        newer_estimate=total_estimate - prior_estimate,
        last_usage=last_usage,
    )
    if policy.estimate.calibration == "max":
        token_ratio = measurement.tokens / max(1, total_estimate)
    else:
        token_ratio = last_usage.tokens / max(1, prior_estimate)
    return replace(measurement, token_ratio=max(1.0, token_ratio))


def calibrate_estimate(
    policy: Policy, *, total_estimate: int, newer_estimate: int, last_usage: LastUsage
) -> Measurement:
    """Correct the estimate of a request by the provider's count, as the policy says.

    `newer_estimate` is the part of the estimate that came after the last call. Under `max` the
    count of that call's input is compared as it is.
    """
    calibration = policy.estimate.calibration
    if calibration == "max":
        usage_tokens = last_usage.input or last_usage.tokens
    else:
        usage_tokens = last_usage.tokens + newer_estimate
    takes_larger = calibration in ("max", "floor")
    if calibration == "none" or (takes_larger and total_estimate >= usage_tokens):
        return Measurement(tokens=total_estimate)
    return Measurement(tokens=usage_tokens, source="provider")
