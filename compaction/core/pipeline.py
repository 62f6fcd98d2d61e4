"""One pass: the stages of a policy in order, until the target is met; what comes out holds its invariants or changes nothing."""

from collections.abc import Collection
from typing import Literal

from compaction.core import invariants
from compaction.core.budget import Budget
from compaction.core.estimate import Measurement, count_entry_tokens, estimate_transcript
from compaction.core.outcome import Outcome
from compaction.core.policy import Policy
from compaction.core.protection import PassLimits, build_protection
from compaction.core.stages.base import ContextDraft, PassContext, Summarize, SummaryFailed
from compaction.core.stages.registry import STAGES
from compaction.core.stages.summarize import needs_original_summary
from compaction.core.targets import list_targets
from compaction.core.transcript import Transcript


def run(
    transcript: Transcript,
    policy: Policy,
    budget: Budget | None,
    measurement: Measurement,
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
        return _build_unchanged(
            transcript, measurement, "skipped", "The model's context window is not known."
        )
    is_over_threshold = budget.is_over(measurement.tokens)
    if not is_over_threshold and not force:
        return _build_unchanged(
            transcript, measurement, "skipped", "The context is within its threshold."
        )
    working_transcript = count_entry_tokens(transcript, policy)
    limits = PassLimits(
        policy=policy,
        budget=budget,
        token_ratio=measurement.token_ratio,
        is_over_threshold=is_over_threshold,
        up_to_seq=up_to_seq,
    )
    pass_context = PassContext(
        policy=policy,
        budget=budget,
        measurement=measurement,
        estimate=estimate_transcript(working_transcript, policy),
        protection=build_protection(working_transcript, limits),
        summarize=summarize,
        instructions=instructions,
        up_to_seq=up_to_seq,
        is_over_threshold=is_over_threshold,
    )
    draft, stages_used, failure = _run_stages(working_transcript, pass_context, only_stages)
    if not stages_used:
        reason = failure or _explain_no_work(transcript, up_to_seq)
        return _build_unchanged(transcript, measurement, "failed" if failure else "skipped", reason)
    outcome = _build_outcome(working_transcript, draft, stages_used, pass_context, failure)
    violations = invariants.find_violations(transcript, outcome)
    return (
        _build_unchanged(transcript, measurement, "failed", failure or " ".join(violations))
        if violations
        else outcome
    )


def _run_stages(
    transcript: Transcript, pass_context: PassContext, only_stages: Collection[str]
) -> tuple[ContextDraft, tuple[str, ...], str]:
    """The draft that comes out, the names of the stages that changed it, and why no summary was written if one was tried."""
    draft, failure = ContextDraft(transcript=transcript), ""
    stages_used: tuple[str, ...] = ()
    for name in pass_context.policy.stages:
        if (only_stages and name not in only_stages) or not (
            only_stages or _is_due(name, draft, pass_context, stages_used)
        ):
            continue
        try:
            next_draft = STAGES[name](draft, pass_context)
        except SummaryFailed as error:
            failure = error.reason
            continue
        if (
            next_draft is not draft
            and name == "summarize"
            and not pass_context.is_smaller(next_draft.transcript)
        ):
            failure = "With the summary the context is not smaller than it was."
        elif next_draft is not draft:
            draft, stages_used = next_draft, (*stages_used, name)
    return draft, stages_used, failure


def _is_due(
    name: str, draft: ContextDraft, pass_context: PassContext, stages_used: tuple[str, ...]
) -> bool:
    """Whether a stage's turn comes: until the target is met, by the measure that the trigger uses; a summary that is owed always."""
    return (
        not stages_used
        or not pass_context.fits(draft.transcript)
        or (name == "summarize" and needs_original_summary(draft, pass_context.policy))
    )


def _build_outcome(
    original: Transcript,
    draft: ContextDraft,
    stages_used: tuple[str, ...],
    pass_context: PassContext,
    failure: str,
) -> Outcome:
    transcript = draft.transcript
    remaining_seqs = {entry.seq for entry in transcript.entries}
    return Outcome(
        status="applied",
        summary=transcript.summary,
        summary_error=failure,
        summarized_up_to=transcript.summarized_up_to,
        boundary_seq=transcript.boundary_seq,
        edits=tuple(edit for edit in draft.edits if edit.seq in remaining_seqs),
        entries=transcript.entries,
        exempt_seqs=tuple(
            entry.seq for entry in transcript.entries if entry.seq < (transcript.boundary_seq or 0)
        ),
        protected_seqs=pass_context.protection.seqs,
        marker=transcript.marker,
        stages_used=stages_used,
        targets=list_targets(original, draft),
        messages_compacted=draft.removal_count
        + sum(edit.seq in remaining_seqs for edit in draft.edits),
        tokens_before=pass_context.measurement.tokens,
        tokens_after=pass_context.to_real_tokens(
            estimate_transcript(transcript, pass_context.policy)
        ),
        proposed_state=draft.proposed_state,
    )


def _build_unchanged(
    transcript: Transcript,
    measurement: Measurement,
    status: Literal["skipped", "failed"],
    reason: str,
) -> Outcome:
    return Outcome(
        status=status,
        reason=reason,
        summary=transcript.summary,
        entries=transcript.entries,
        tokens_before=measurement.tokens,
        tokens_after=measurement.tokens,
    )


def _explain_no_work(transcript: Transcript, up_to_seq: int | None) -> str:
    if not transcript.entries:
        return "There are no messages to compact."
    if up_to_seq is not None:
        return f"No whole turn up to message {up_to_seq} is older than the protected messages."
    return "There is too little to compact: every message is pinned or among the newest, which are protected."
