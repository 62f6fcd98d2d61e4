"""Replace what is older than the protected tail by one summary, which includes the earlier one."""

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
    """Call the summarizer once, or not at all if nothing is older than the tail.

    If the policy summarizes originals and messages were cut to excerpts, the excerpts stay and the
    summary is added: it covers the whole conversation, the tail too, because it says what is done
    and what remains. The boundary moves as well only if the excerpts leave the context over its
    target. Raises SummaryFailed. (Wolffish, The Compaction Flow, steps 2 to 5)
    """
    adds_summary = _can_add_summary(draft, pass_context)
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
    """Return whether this pass cut messages whose whole text the policy wants summarized."""
    if policy.summary.source != "originals":
        return False
    return any(edit.kind == "excerpted" for edit in draft.edits)


def find_objection(text: str, task: SummaryTask, policy: Policy) -> str | None:
    """Return why a text is not a usable summary for a task, in one sentence; None if it is usable.

    A summarizer that tries again by itself calls this too.
    """
    if not text.strip():
        return "The summary is empty."
    source_tokens = estimate_summary(task.previous, policy)
    source_tokens += sum(entry.tokens for entry in task.entries)
    text_tokens = estimate_summary(text.strip(), policy)
    if text_tokens < source_tokens:
        return None
    return (
        f"The summary ({text_tokens} tokens) is not smaller than what it replaces "
        f"({source_tokens} tokens)."
    )


def _can_add_summary(draft: ContextDraft, pass_context: PassContext) -> bool:
    """Return whether a summary belongs beside the excerpts, and leaves the context smaller."""
    if not needs_original_summary(draft, pass_context.policy):
        return False
    bare_transcript = replace(draft.transcript, summary=None)
    bare_estimate = estimate_transcript(bare_transcript, pass_context.policy)
    full_estimate = bare_estimate + pass_context.budget.summary_tokens
    return pass_context.to_real_tokens(full_estimate) < pass_context.measurement.tokens


def _add_summary(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    entries = draft.transcript.entries
    summary = _request_summary(draft, pass_context, entries)
    next_transcript = replace(
        draft.transcript, summary=summary.text, summarized_up_to=entries[-1].seq
    )
    return replace(draft, transcript=next_transcript, proposed_state=summary.proposed_state)


def _replace_with_summary(
    draft: ContextDraft, pass_context: PassContext, split: SplitPoint, old_seqs: tuple[int, ...]
) -> ContextDraft:
    transcript = draft.transcript
    if needs_original_summary(draft, pass_context.policy):
        sources = transcript.entries
        last_seq = transcript.entries[-1].seq
    else:
        sources = tuple(entry for entry in transcript.entries if entry.seq < split.boundary)
        last_seq = transcript.last_summarized_seq
    summary = _request_summary(draft, pass_context, sources)
    next_transcript = replace(
        transcript,
        entries=tuple(
            entry
            for entry in transcript.entries
            if entry.seq >= split.boundary or entry.seq in split.exempt_seqs
        ),
        summary=summary.text,
        boundary_seq=split.boundary,
        # Needed only if the summary covers more than what the boundary says anyway.
        summarized_up_to=last_seq if last_seq >= split.boundary else None,
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

    If the earlier summary covers all of them already, it is returned and no model is called.
    """
    previous = draft.transcript.summary
    last_summarized_seq = draft.transcript.last_summarized_seq
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
    """Return the messages as the summarizer reads them: as they are shown, or their originals."""
    if pass_context.policy.summary.source == "shown":
        return entries
    original_entries = tuple(
        entry if entry.original is None else replace(entry, content=entry.original, tokens=0)
        for entry in entries
    )
    originals = replace(draft.transcript, entries=original_entries)
    return count_entry_tokens(originals, pass_context.policy).entries
