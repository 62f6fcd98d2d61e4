"""One pass: the stages of a policy in order, until the target is met; what comes out holds its invariants or changes nothing."""

from collections.abc import Collection
from typing import Literal

from compaction.core import invariants
from compaction.core.budget import Budget
from compaction.core.estimate import Measure, estimated, weigh
from compaction.core.outcome import Outcome
from compaction.core.policy import Policy
from compaction.core.protection import Limits, protect
from compaction.core.stages.base import Draft, Summarize, SummaryFailed, Work
from compaction.core.stages.registry import STAGES
from compaction.core.stages.summarize import owed
from compaction.core.targets import targets
from compaction.core.transcript import Transcript


def run(
    transcript: Transcript,
    policy: Policy,
    budget: Budget | None,
    measure: Measure,
    summarize: Summarize,
    *,
    instructions: str = "",
    up_to_seq: int | None = None,
    only_stages: Collection[str] = (),
    force: bool = False,
) -> Outcome:
    """Propose a smaller context. Nothing is changed, the caller installs what an applied outcome says.

    Without `force` a context that is not over its threshold is skipped; with it, what is older than the protected tail is compacted
    all the same. `only_stages`: of the policy's stages only these, and each of them, target or not. `summarize` is called once at most,
    and may raise SummaryFailed: calling a provider again is its own affair, and the stages after it go on. Every outcome that is not
    applied says why in `reason`. FEAT-011, Compact Rules.
    """
    if budget is None:
        return _unchanged(
            transcript, measure, "skipped", "The model's context window is not known."
        )
    cramped = budget.over(measure.tokens)
    if not cramped and not force:
        return _unchanged(transcript, measure, "skipped", "The context is within its threshold.")
    weighed = weigh(transcript, policy)
    limits = Limits(
        policy=policy, budget=budget, scale=measure.scale, cramped=cramped, up_to_seq=up_to_seq
    )
    work = Work(
        policy=policy,
        budget=budget,
        measure=measure,
        estimate=estimated(weighed, policy),
        protection=protect(weighed, limits),
        summarize=summarize,
        instructions=instructions,
        up_to_seq=up_to_seq,
        cramped=cramped,
    )
    draft, used, failure = _through_stages(weighed, work, only_stages)
    if not used:
        reason = failure or _nothing_to_do(transcript, up_to_seq)
        return _unchanged(transcript, measure, "failed" if failure else "skipped", reason)
    outcome = _applied(weighed, draft, used, work, failure)
    broken = invariants.violations(transcript, outcome)
    return (
        _unchanged(transcript, measure, "failed", failure or " ".join(broken))
        if broken
        else outcome
    )


def _through_stages(
    transcript: Transcript, work: Work, only: Collection[str]
) -> tuple[Draft, tuple[str, ...], str]:
    """The draft that comes out, the names of the stages that changed it, and why no summary was written if one was tried."""
    draft, failure = Draft(transcript=transcript), ""
    used: tuple[str, ...] = ()
    for name in work.policy.stages:
        if (only and name not in only) or not (only or _due(name, draft, work, used)):
            continue
        try:
            made = STAGES[name](draft, work)
        except SummaryFailed as failed:
            failure = failed.reason
            continue
        if made is not draft and name == "summarize" and not work.smaller(made.transcript):
            failure = "With the summary the context is not smaller than it was."
        elif made is not draft:
            draft, used = made, (*used, name)
    return draft, used, failure


def _due(name: str, draft: Draft, work: Work, used: tuple[str, ...]) -> bool:
    """Whether a stage's turn comes: until the target is met, by the measure that the trigger uses; a summary that is owed always."""
    return (
        not used
        or not work.fits(draft.transcript)
        or (name == "summarize" and owed(draft, work.policy))
    )


def _applied(
    before: Transcript, draft: Draft, used: tuple[str, ...], work: Work, failure: str
) -> Outcome:
    after = draft.transcript
    sent = {entry.seq for entry in after.entries}
    return Outcome(
        status="applied",
        summary=after.summary,
        summary_failed=failure,
        summarized_up_to=after.summarized_up_to,
        boundary_seq=after.boundary_seq,
        edits=tuple(edit for edit in draft.edits if edit.seq in sent),
        kept=after.entries,
        kept_verbatim=tuple(
            entry.seq for entry in after.entries if entry.seq < (after.boundary_seq or 0)
        ),
        untouched=work.protection.seqs,
        marker=after.marker,
        stages_used=used,
        targets=targets(before, draft),
        messages_compacted=draft.removed + sum(edit.seq in sent for edit in draft.edits),
        tokens_before=work.measure.tokens,
        tokens_after=work.size(estimated(after, work.policy)),
    )


def _unchanged(
    transcript: Transcript, measure: Measure, status: Literal["skipped", "failed"], reason: str
) -> Outcome:
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
