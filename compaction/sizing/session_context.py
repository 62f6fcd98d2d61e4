"""How a session stands: its policy and budget, what its past runs mean for the next, and how large its next request is."""

from dataclasses import dataclass, replace
from uuid import UUID

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import STORED_CHARS_PER_TOKEN, Subject
from compaction.core.attachments import file_token_budget
from compaction.core.budget import Budget, assumed, plan
from compaction.core.counting import counter
from compaction.core.estimate import LastUsage, Measure, calibrated, estimated, measure, tokens_of
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.transcript import Transcript
from compaction.models import SessionState, state_of
from compaction.sizing import calibration
from compaction.sizing.calibration import Learned


class NoSuchSession(Exception):
    """The session does not exist."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that decides about a session's compaction, read in a handful of queries. `budget` is None where its window is unknown.

    `experience` is of its model, whatever the session.
    """

    subject: Subject
    policy_name: str
    policy: Policy
    state: SessionState
    budget: Budget | None
    experience: Learned = calibration.NOTHING

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

    @property
    def refused_scale(self) -> float:
        """Real tokens to an estimated one, as a refusal told this session; 1 where none did."""
        return self.state.learned_scale if self.learned else 1.0


def of(session_id: UUID, *, policy: tuple[str, Policy] | None = None) -> Situation | None:
    """How a session stands, under its own policy and threshold or the policy given. None when the session is gone."""
    subject = backend_registry.get().subject(session_id)
    if subject is None:
        return None
    subject = replace(subject, automatic=subject.automatic and policies.automatic())
    name, chosen = policy or policies.choose(subject.policy, subject.model_policy)
    if policy is None:
        own = subject.compact_threshold
        chosen = policies.with_threshold(
            chosen, policies.project_threshold() if own is None else own
        )
    experience = calibration.of(subject.model, subject.window)
    now = Situation(
        subject=subject,
        policy_name=name,
        policy=chosen,
        state=state_of(session_id),
        budget=None,
        experience=experience,
    )
    now = replace(now, budget=planned(now))
    if policy is None and now.budget and subject.compact_threshold is None:
        now = replace(now, policy=policies.with_token_threshold(chosen, now.budget))
        now = replace(now, budget=planned(now))
    return now


def learned_key(subject: Subject) -> str:
    """What learned numbers belong to; an operator who corrects the window makes them void."""
    return f"{subject.model} {subject.window}"


def quick_measure(situation: Situation) -> Measure:
    """The size of the next request without reading a message: the last usage and sums of stored estimates.

    What a policy counts by a text itself (code, features) is taken for plain text here.
    """
    policy = situation.policy
    usage = (
        None
        if policy.estimate.calibration == "none"
        else backend_registry.get().last_usage(situation.subject)
    )
    scale = situation.refused_scale
    if usage is None:
        plain = plain_tokens(situation) if situation.experience.ratio > 1 else 0
        return _experienced(situation, _whole(situation), plain=plain, scale=scale)
    if policy.estimate.calibration == "last_usage" and scale <= 1:
        return Measure(tokens=usage.tokens + _unseen(situation, usage), source="provider")
    whole = _whole(situation)
    return Measure(tokens=int(whole * scale)) if scale > 1 else _calibrated(situation, whole, usage)


def full_measure(situation: Situation, transcript: Transcript, usage: LastUsage | None) -> Measure:
    """The same of a transcript in hand, and how many real tokens an estimated one stands for."""
    found, scale = measure(transcript, situation.policy, usage), situation.refused_scale
    if scale > 1:
        tokens = int(estimated(transcript, situation.policy) * scale)
        return replace(found, tokens=max(found.tokens, tokens), scale=max(found.scale, scale))
    if usage is not None or situation.experience.ratio <= 1:
        return found
    plain = replace(
        transcript,
        overhead_tokens=0,
        entries=tuple(replace(entry, tokens=0) for entry in transcript.entries),
    )
    return _experienced(situation, found.tokens, plain=estimated(plain, ONECLAW))


def fixed_tokens(situation: Situation) -> int:
    """Estimated tokens of what stands around the messages, as far as the policy counts it: system prompt, tools, summary."""
    return sum(fixed_parts(situation).values())


def fixed_parts(situation: Situation) -> dict[str, int]:
    """The same by its parts."""
    subject, policy = situation.subject, situation.policy
    count = counter(policy, subject.family)
    return {
        "system_prompt": spoken(situation, subject.system_chars)
        if policy.estimate.count_system
        else 0,
        "summary": (count.text(subject.summary) if subject.summary else 0)
        + spoken(situation, subject.beside_chars),
        "tool_definitions": count.characters(subject.tool_chars, bare=True)
        if subject.tool_chars and policy.estimate.count_tools
        else 0,
    }


def attached(situation: Situation) -> int:
    """Estimated tokens of the files of live messages, as far as they are sent: texts take no more than their share of the window."""
    subject, budget, knobs = situation.subject, situation.budget, situation.policy.files
    texts = recount(situation, subject.attached_tokens)
    if texts and budget is not None:
        texts = min(
            texts,
            file_token_budget(
                budget.window,
                fixed_tokens(situation),
                budget.window - budget.input,
                knobs.budget_ratio,
            ),
        )
    return texts + subject.attached_images * situation.policy.estimate.image_tokens


def spoken(situation: Situation, characters: int) -> int:
    """Tokens of a text of so many characters; none for none."""
    return tokens_of(characters, situation.policy, situation.subject.family) if characters else 0


def recount(situation: Situation, stored: int, messages: int = 0) -> int:
    """A sum of stored estimates of so many messages, in the policy's tokens, with what framing these costs."""
    if not stored and not messages:
        return 0
    knobs = situation.policy.estimate
    if counts_as_stored(situation.policy):
        return stored
    return (
        spoken(situation, stored * STORED_CHARS_PER_TOKEN + messages * knobs.per_message_chars)
        + messages * knobs.per_message
    )


def recounted(transcript: Transcript, policy: Policy) -> Transcript:
    """The transcript to be counted by the policy: stored counts are dropped where it counts otherwise, and where more than text is sent."""
    stored = counts_as_stored(policy)
    entries = tuple(
        e if stored and e.original is None and not e.images else replace(e, tokens=0)
        for e in transcript.entries
    )
    return replace(transcript, entries=entries)


def counts_as_stored(policy: Policy) -> bool:
    """Whether the policy counts the text of a message as the host stores it."""
    ours, stored = policy.estimate, ONECLAW.estimate
    same = (
        "method",
        "chars_per_token",
        "code_chars_per_token",
        "rounding",
        "per_message",
        "per_message_chars",
        "safety_multiplier",
    )
    return (
        all(getattr(ours, name) == getattr(stored, name) for name in same)
        and not ours.family_multiplier
    )


def plain_tokens(situation: Situation, *, before_seq: int | None = None) -> int:
    """The size of the next request, or of one that ended before a message, at STORED_CHARS_PER_TOKEN, whatever the policy."""
    subject = situation.subject
    fixed = (
        subject.system_chars
        + subject.tool_chars
        + len(subject.summary or "")
        + subject.beside_chars
    ) // STORED_CHARS_PER_TOKEN
    return (
        fixed
        + subject.attached_tokens
        + backend_registry.get().weight(subject, before_seq=before_seq)
    )


def planned(situation: Situation) -> Budget | None:
    """The budget of its policy and its window; None where that is unknown and the policy does not guess."""
    subject = situation.subject
    return plan(
        situation.policy,
        _window(situation),
        output_reserve=subject.output_reserve,
        max_tokens=subject.max_tokens,
        family=subject.family,
    )


def _window(situation: Situation) -> int | None:
    """The registry's, or less where a refusal told so. An unknown one may be told too, where the policy compacts without knowing."""
    subject = situation.subject
    told = [
        situation.experience.window,
        situation.state.learned_window if situation.learned else None,
    ]
    smallest = min((window for window in told if window), default=None)
    if subject.window:
        return min(subject.window, smallest or subject.window)
    return smallest if assumed(situation.policy, subject.family) else None


def _whole(situation: Situation) -> int:
    """The estimate of the whole request under the policy."""
    backend, subject, knobs = backend_registry.get(), situation.subject, situation.policy.estimate
    framed = knobs.per_message or knobs.per_message_chars
    messages = backend.live_count(subject) if framed else 0
    said = recount(situation, backend.weight(subject), messages)
    return knobs.per_conversation + fixed_tokens(situation) + attached(situation) + said


def _unseen(situation: Situation, usage: LastUsage) -> int:
    """What came after the last call."""
    subject = situation.subject
    return recount(
        situation,
        backend_registry.get().weight(subject, after_seq=usage.after_seq),
        max(0, subject.last_seq - usage.after_seq),
    )


def _calibrated(situation: Situation, whole: int, usage: LastUsage) -> Measure:
    return calibrated(
        situation.policy, whole=whole, unseen=_unseen(situation, usage), last_usage=usage
    )


def _experienced(situation: Situation, whole: int, *, plain: int, scale: float = 1.0) -> Measure:
    """An estimate where no count stands: what this model has taught may make it larger, never smaller."""
    if situation.policy.estimate.calibration != "none":
        scale = max(scale, situation.experience.ratio * plain / max(1, whole))
    return Measure(tokens=int(whole * scale), scale=scale) if scale > 1 else Measure(tokens=whole)
