"""The pass of policies with several stages: in order, until the context is down to its target."""

from dataclasses import dataclass, fields
from typing import cast

from compaction.core import policy
from compaction.core.outcome import Method, Outcome
from compaction.core.pass_context import PassContext
from compaction.core.pipeline import NOT_SMALLER, build_outcome, list_targets
from compaction.core.summary import SummaryFailed
from compaction.core.transcript import Transcript
from compaction.systems.kit.drafts import ContextDraft, Stage, StageContext
from compaction.systems.kit.protection import build_protection
from compaction.systems.kit.prune_tool_outputs import prune_tool_outputs
from compaction.systems.kit.summarize import needs_original_summary, summarize

STAGES: dict[str, Stage] = {"summarize": summarize}


def add_stage(name: str, stage: Stage) -> None:
    """Let policies name a stage."""
    STAGES[name] = stage
    if name not in policy.STAGES:
        policy.STAGES.append(name)


add_stage("prune_tool_outputs", prune_tool_outputs)


@dataclass(frozen=True, kw_only=True, slots=True)
class _StageResults:
    """What the stages made of a context."""

    draft: ContextDraft
    stages_used: tuple[str, ...]
    summary_error: str
    is_final: bool


def compact_in_stages(transcript: Transcript, pass_context: PassContext) -> Outcome | None:
    """Run the policy's stages. Returns None if none of them changed anything.

    If no summary comes back, the stages that follow still run. Raises SummaryFailed if these
    change nothing either.
    """
    values = {each.name: getattr(pass_context, each.name) for each in fields(pass_context)}
    context = StageContext(**values, protection=build_protection(transcript, pass_context.limits))
    results = _run_stages(pass_context.add_growth(transcript), context)
    if not results.stages_used:
        if results.summary_error:
            raise SummaryFailed(results.summary_error, is_final=results.is_final)
        return None
    draft = results.draft
    entries_after = {entry.seq: entry for entry in draft.transcript.entries}
    # A message that was edited and then removed counts once, as removed.
    edits = tuple(edit for edit in draft.edits if edit.seq in entries_after)
    methods: dict[int, Method] = {edit.seq: cast("Method", edit.kind) for edit in draft.edits}
    methods |= dict.fromkeys(draft.compacted_seqs, "summarized")
    methods |= dict.fromkeys(draft.left_out_seqs, "left_out")
    return build_outcome(
        context,
        draft.transcript,
        draft.summary,
        protected_seqs=context.protection.seqs,
        stages_used=results.stages_used,
        targets=list_targets(transcript, entries_after, methods),
        messages_compacted=draft.removal_count + len(edits),
        edits=edits,
        summary_error=results.summary_error,
    )


def _run_stages(transcript: Transcript, context: StageContext) -> _StageResults:
    draft = ContextDraft(transcript=transcript)
    stages_used: list[str] = []
    summary_error = ""
    is_final = False
    for name in context.policy.stages:
        if context.only_stages:
            is_due = name in context.only_stages
        else:
            is_due = not stages_used or _is_still_due(name, draft, context)
        if not is_due:
            continue
        try:
            next_draft = STAGES[name](draft, context)
        except SummaryFailed as error:
            summary_error, is_final = error.reason, error.is_final
            continue
        if next_draft is draft:
            continue
        # A summary that is longer than what it replaces was paid for, but must not be installed.
        if name == "summarize" and not context.is_smaller(next_draft.transcript):
            summary_error = NOT_SMALLER
            continue
        draft = next_draft
        stages_used.append(name)
    return _StageResults(
        draft=draft,
        stages_used=tuple(stages_used),
        summary_error=summary_error,
        is_final=is_final,
    )


def _is_still_due(name: str, draft: ContextDraft, context: StageContext) -> bool:
    """Return whether a stage runs after another one has changed something.

    It does until the target is met, by the measure that the trigger uses. A summary that the policy
    writes of excerpted originals is due even then: only it still has their text.
    """
    if not context.fits(draft.transcript):
        return True
    return name == "summarize" and needs_original_summary(draft, context.policy)
