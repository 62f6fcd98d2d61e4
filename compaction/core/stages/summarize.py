"""Replace what is older than the protected tail by one summary, which takes in the one before; or put it beside what was cut short."""

from collections.abc import Iterable
from dataclasses import replace

from compaction.core.estimate import count_entry_tokens, estimate_summary, estimate_transcript
from compaction.core.policy import Policy
from compaction.core.protection import SplitPoint, find_splits
from compaction.core.stages.base import (
    ContextDraft,
    PassContext,
    SummaryFailed,
    SummaryOutcome,
    SummaryTask,
)
from compaction.core.transcript import TranscriptEntry


def summarize(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """One call of the summarizer, or none when nothing is older than the tail. Raises SummaryFailed.

    Where the policy summarizes originals and messages were cut to excerpts, these stay and the summary of what they were is added
    (Wolffish, Steps 2 to 5): it tells of the whole conversation, the tail too, because it says what is done and what remains. Only when
    the excerpts leave the context over its target does the boundary move as well.
    """
    adds_summary = needs_original_summary(draft, pass_context.policy) and _is_worthwhile(
        draft, pass_context
    )
    if adds_summary and pass_context.fits(draft.transcript):
        return _add_summary(draft, pass_context)
    for split in find_splits(draft.transcript, pass_context.limits):
        old_seqs = tuple(
            entry.seq
            for entry in draft.transcript.entries
            if entry.seq < split.boundary and entry.seq not in split.exempt_seqs
        )
        if old_seqs:
            return _replace_with_summary(draft, pass_context, split, old_seqs)
    return _add_summary(draft, pass_context) if adds_summary else draft


def needs_original_summary(draft: ContextDraft, policy: Policy) -> bool:
    """Whether this pass cut messages whose whole text the policy wants summarized."""
    return policy.summary.source == "originals" and any(
        edit.kind == "excerpted" for edit in draft.edits
    )


def find_objection(text: str, task: SummaryTask, policy: Policy) -> str | None:
    """Why a text is no summary of what the task gave, in one sentence; None when it is one. A summarizer that tries again asks this too."""
    if not text.strip():
        return "The summary is empty."
    source_tokens = estimate_summary(task.previous, policy) + sum(
        entry.tokens for entry in task.entries
    )
    text_tokens = estimate_summary(text.strip(), policy)
    return (
        f"The summary ({text_tokens} tokens) is not smaller than what it replaces ({source_tokens} tokens)."
        if text_tokens >= source_tokens
        else None
    )


def _is_worthwhile(draft: ContextDraft, pass_context: PassContext) -> bool:
    """Whether a summary of full length beside the excerpts leaves the context smaller than it was."""
    base_estimate = estimate_transcript(
        replace(draft.transcript, summary=None), pass_context.policy
    )
    return (
        pass_context.to_real_tokens(base_estimate + pass_context.budget.summary_tokens)
        < pass_context.measurement.tokens
    )


def _add_summary(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    entries = draft.transcript.entries
    summary = _request_summary(draft, pass_context, entries)
    return replace(
        draft,
        transcript=replace(
            draft.transcript, summary=summary.text, summarized_up_to=entries[-1].seq
        ),
        proposed_state=summary.proposed_state,
    )


def _replace_with_summary(
    draft: ContextDraft, pass_context: PassContext, split: SplitPoint, old_seqs: tuple[int, ...]
) -> ContextDraft:
    transcript = draft.transcript
    covers_all = needs_original_summary(draft, pass_context.policy)
    summary = _request_summary(
        draft,
        pass_context,
        (entry for entry in transcript.entries if covers_all or entry.seq < split.boundary),
    )
    end_seq = transcript.entries[-1].seq if covers_all else transcript.last_summarized_seq
    next_transcript = replace(
        transcript,
        entries=tuple(
            entry
            for entry in transcript.entries
            if entry.seq >= split.boundary or entry.seq in split.exempt_seqs
        ),
        summary=summary.text,
        boundary_seq=split.boundary,
        summarized_up_to=end_seq if end_seq >= split.boundary else None,
    )
    return replace(
        draft,
        transcript=next_transcript,
        compacted_seqs=(*draft.compacted_seqs, *old_seqs),
        proposed_state=summary.proposed_state,
    )


def _request_summary(
    draft: ContextDraft, pass_context: PassContext, entries: Iterable[TranscriptEntry]
) -> SummaryOutcome:
    """Return a summary of the messages and of the earlier summary. Raises SummaryFailed.

    Where the earlier summary covers all of them already, it is returned and no model is called.
    """
    previous, last_summarized_seq = draft.transcript.summary, draft.transcript.last_summarized_seq
    new_entries = tuple(entry for entry in entries if entry.seq > last_summarized_seq)
    if previous and not new_entries:
        return SummaryOutcome(text=previous)
    task = SummaryTask(
        previous=previous,
        entries=_select_sources(draft, pass_context, new_entries),
        instructions=pass_context.instructions,
        max_tokens=pass_context.budget.summary_tokens,
    )
    summary = pass_context.summarize(task)
    summary = replace(summary, text=summary.text.strip())
    objection = find_objection(summary.text, task, pass_context.policy)
    if objection:
        raise SummaryFailed(objection)
    return summary


def _select_sources(
    draft: ContextDraft, pass_context: PassContext, entries: tuple[TranscriptEntry, ...]
) -> tuple[TranscriptEntry, ...]:
    """The messages as the summarizer is given them: as they are shown, or as they were before any edit."""
    if pass_context.policy.summary.source == "shown":
        return entries
    original_entries = tuple(
        entry if entry.original is None else replace(entry, content=entry.original, tokens=0)
        for entry in entries
    )
    return count_entry_tokens(
        replace(draft.transcript, entries=original_entries), pass_context.policy
    ).entries
