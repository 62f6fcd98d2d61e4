"""How a session stands: its policy and budget, what its past runs mean for the next, and how large its next request is."""

from dataclasses import dataclass, replace
from uuid import UUID

from compaction import backends, policies
from compaction.backends.base import STORED_CHARS_PER_TOKEN, Subject
from compaction.core.budget import Budget, plan
from compaction.core.estimate import LastUsage, Measure, estimated, measure, summary_tokens, tokens_of
from compaction.core.policy import Policy
from compaction.core.transcript import Transcript
from compaction.models import SessionState, state_of


class NoSuchSession(Exception):
    """The session does not exist."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that decides about a session's compaction, read in a handful of queries. `budget` is None where its window is unknown."""

    subject: Subject
    policy_name: str
    policy: Policy
    state: SessionState
    budget: Budget | None

    @property
    def automatic(self) -> str:
        """Whether runs start by themselves: on, off, waiting (after a failure or a rewind) or stopped (they gained nothing)."""
        if self.budget is None or not self.subject.automatic:
            return "off"
        if self.state.stopped:
            return "stopped"
        return "waiting" if self.subject.held or self.state.waiting else "on"

    @property
    def learned(self) -> bool:
        """Whether what a refusal told still holds: same model, same window in the registry."""
        return bool(self.state.learned_for) and self.state.learned_for == learned_key(self.subject)


def of(session_id: UUID, *, policy: tuple[str, Policy] | None = None) -> Situation | None:
    """How a session stands, under its own policy or the one given. None when the session is gone."""
    subject = backends.get().subject(session_id)
    if subject is None:
        return None
    name, chosen = policy or policies.choose(subject.policy, subject.model_policy)
    blank = Situation(subject=subject, policy_name=name, policy=chosen, state=state_of(session_id), budget=None)
    return replace(blank, budget=plan(chosen, _window(blank)))


def learned_key(subject: Subject) -> str:
    """What learned numbers belong to; an operator who corrects the window makes them void."""
    return f"{subject.model} {subject.window}"


def quick_measure(situation: Situation) -> Measure:
    """The size of the next request without reading a message: the last usage and a sum of stored estimates."""
    backend, subject, policy = backends.get(), situation.subject, situation.policy
    usage = _calibrating(situation, backend.last_usage(subject))
    scale = situation.state.learned_scale if situation.learned else 1.0
    if usage is not None and scale <= 1:
        return Measure(tokens=usage.tokens + recount(backend.weight(subject, after_seq=usage.after_seq), policy), source="provider")
    whole = fixed_tokens(situation) + recount(backend.weight(subject), policy)
    return Measure(tokens=int(whole * scale))


def full_measure(situation: Situation, transcript: Transcript, usage: LastUsage | None) -> Measure:
    """The same of a transcript in hand, and how many real tokens an estimated one stands for."""
    found = measure(transcript, situation.policy, usage)
    scale = situation.state.learned_scale if situation.learned else 1.0
    if scale <= 1:
        return found
    return replace(found, tokens=max(found.tokens, int(estimated(transcript, situation.policy) * scale)), scale=max(found.scale, scale))


def fixed_tokens(situation: Situation) -> int:
    """Estimated tokens of what stands around the messages: system prompt, tools, summary."""
    subject, policy = situation.subject, situation.policy
    return spoken(subject.system_chars, policy) + spoken(subject.tool_chars, policy) + summary_tokens(subject.summary, policy)


def spoken(characters: int, policy: Policy) -> int:
    """Tokens of a text of so many characters; none for none."""
    return tokens_of(characters, policy) if characters else 0


def recount(stored: int, policy: Policy) -> int:
    """A sum of stored estimates, in the policy's tokens."""
    return int(stored * STORED_CHARS_PER_TOKEN / policy.estimate.chars_per_token)


def recounted(transcript: Transcript, policy: Policy) -> Transcript:
    """The transcript counted by the policy: stored counts are dropped where it counts otherwise."""
    if policy.estimate.chars_per_token == STORED_CHARS_PER_TOKEN:
        return transcript
    entries = tuple(replace(entry, tokens=0) for entry in transcript.entries)
    return replace(transcript, entries=entries, overhead_tokens=recount(transcript.overhead_tokens, policy))


def _window(situation: Situation) -> int | None:
    window, learned = situation.subject.window, situation.state.learned_window
    return min(window, learned) if window and learned and situation.learned else window


def _calibrating(situation: Situation, usage: LastUsage | None) -> LastUsage | None:
    return None if situation.policy.estimate.calibration == "none" else usage
