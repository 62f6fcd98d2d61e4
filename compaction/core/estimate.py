"""How many tokens the next request takes: estimated from characters, corrected by what the provider last counted."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from compaction.core.policy import Policy
from compaction.core.transcript import Entry, Transcript


@dataclass(frozen=True, kw_only=True, slots=True)
class LastUsage:
    """What the provider counted in the last call on this context: `tokens` in and out, and the seq of its answer."""

    tokens: int
    after_seq: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """The size of the next request in tokens, and `scale`: how many real tokens an estimated one stands for, at least 1."""

    tokens: int
    source: Literal["provider", "estimated"] = "estimated"
    scale: float = 1.0


def tokens_of(characters: int, policy: Policy) -> int:
    """Tokens of a text of so many characters: rounded down, at least one (FEAT-011, Token Counting Rules)."""
    return max(1, int(characters // policy.estimate.chars_per_token))


def summary_tokens(summary: str | None, policy: Policy) -> int:
    """Tokens of a summary, none for none."""
    return tokens_of(len(summary), policy) if summary else 0


def weigh(transcript: Transcript, policy: Policy) -> Transcript:
    """The same transcript with every entry counted; entries that come counted stay the objects they are."""
    if all(entry.tokens for entry in transcript.entries):
        return transcript
    return replace(
        transcript, entries=tuple(e if e.tokens else replace(e, tokens=tokens_of(e.characters, policy)) for e in transcript.entries)
    )


def estimated(transcript: Transcript, policy: Policy, entries: Iterable[Entry] | None = None) -> int:
    """Estimated tokens of what would be sent: overhead, summary, and the entries (all of them, or those given)."""
    counted = transcript.entries if entries is None else entries
    spoken = sum(entry.tokens or tokens_of(entry.characters, policy) for entry in counted)
    return transcript.overhead_tokens + summary_tokens(transcript.summary, policy) + spoken


def measure(transcript: Transcript, policy: Policy, last_usage: LastUsage | None = None) -> Measure:
    """Measure what would be sent next. `last_usage` must come from a call on this very context (same model, same version), else None.

    The provider's count stands for all up to its answer; what came after is estimated and added. Counts are never summed over calls.
    """
    if last_usage is None or last_usage.tokens <= 0 or policy.estimate.calibration == "none":
        return Measure(tokens=estimated(transcript, policy))
    seen = estimated(transcript, policy, (e for e in transcript.entries if e.seq <= last_usage.after_seq))
    unseen = estimated(transcript, policy) - seen
    return Measure(tokens=last_usage.tokens + unseen, source="provider", scale=max(1.0, last_usage.tokens / max(1, seen)))
