"""One pass: the stages of a policy in order, until the target is met; what comes out holds its invariants or changes nothing."""

from typing import Literal

from compaction.core import invariants
from compaction.core.budget import Budget
from compaction.core.estimate import Measure, estimated, weigh
from compaction.core.outcome import Outcome
from compaction.core.policy import Policy
from compaction.core.stages import STAGES
from compaction.core.stages.base import Draft, Summarize, SummaryFailed, SummaryTask, Work
from compaction.core.transcript import Transcript

__all__ = ["Outcome", "Summarize", "SummaryFailed", "SummaryTask", "run"]


def run(
    transcript: Transcript,
    policy: Policy,
    budget: Budget | None,
    measure: Measure,
    summarize: Summarize,
    *,
    instructions: str = "",
    up_to_seq: int | None = None,
    force: bool = False,
) -> Outcome:
    """Propose a smaller context. Nothing is changed, the caller installs what an applied outcome says.

    Without `force` a context that is not over its threshold is skipped; with it, what is older than the protected tail is compacted
    all the same. `summarize` is called once at most, and may raise SummaryFailed: calling a provider again is its own affair.
    Every outcome that is not applied says why in `reason`. FEAT-011, Compact Rules.
    """
    if budget is None:
        return _unchanged(transcript, measure, "skipped", "The model's context window is not known.")
    cramped = budget.over(measure.tokens)
    if not cramped and not force:
        return _unchanged(transcript, measure, "skipped", "The context is within its threshold.")
    work = Work(
        policy=policy,
        budget=budget,
        measure=measure,
        summarize=summarize,
        instructions=instructions,
        up_to_seq=up_to_seq,
        cramped=cramped,
    )
    weighed = weigh(transcript, policy)
    try:
        draft, used = _through_stages(weighed, work)
    except SummaryFailed as failure:
        return _unchanged(transcript, measure, "failed", failure.reason)
    if not used:
        return _unchanged(transcript, measure, "skipped", _nothing_to_do(transcript, up_to_seq))
    outcome = _applied(weighed, draft, used, work)
    broken = invariants.violations(transcript, outcome)
    return _unchanged(transcript, measure, "failed", " ".join(broken)) if broken else outcome


def _through_stages(transcript: Transcript, work: Work) -> tuple[Draft, tuple[str, ...]]:
    draft = Draft(transcript=transcript)
    used: tuple[str, ...] = ()
    for name in work.policy.stages:
        if used and _tokens(transcript, draft, work) <= work.budget.target:
            break
        before, draft = draft, STAGES[name](draft, work)
        used = used if draft is before else (*used, name)
    return draft, used


def _tokens(before: Transcript, draft: Draft, work: Work) -> int:
    """The draft's size: what was measured, in the proportion of the two estimates, so that before and after compare."""
    return work.measure.tokens * estimated(draft.transcript, work.policy) // max(1, estimated(before, work.policy))


def _applied(before: Transcript, draft: Draft, used: tuple[str, ...], work: Work) -> Outcome:
    verbatim = frozenset(draft.kept_verbatim)
    return Outcome(
        status="applied",
        summary=draft.transcript.summary,
        boundary_seq=next((entry.seq for entry in draft.transcript.entries if entry.seq not in verbatim), None),
        edits=draft.edits,
        kept=draft.transcript.entries,
        kept_verbatim=draft.kept_verbatim,
        stages_used=used,
        messages_compacted=len(draft.compacted),
        tokens_before=work.measure.tokens,
        tokens_after=_tokens(before, draft, work),
    )


def _unchanged(transcript: Transcript, measure: Measure, status: Literal["skipped", "failed"], reason: str) -> Outcome:
    return Outcome(
        status=status,
        reason=reason,
        summary=transcript.summary,
        kept=transcript.entries,
        tokens_before=measure.tokens,
        tokens_after=measure.tokens,
    )


def _nothing_to_do(transcript: Transcript, up_to_seq: int | None) -> str:
    if not transcript.entries:
        return "There are no messages to compact."
    if up_to_seq is not None:
        return f"No whole turn up to message {up_to_seq} is older than the protected messages."
    return "There is too little to compact: every message is pinned or among the newest, which are protected."
