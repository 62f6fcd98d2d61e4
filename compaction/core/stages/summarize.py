"""Replace what is older than the protected tail by one summary, which includes the earlier one."""

from collections.abc import Iterable
from dataclasses import replace

from compaction.core.estimate import (
    TokenCounter,
    build_counter,
    estimate_summary,
    estimate_transcript,
)
from compaction.core.policy import Policy
from compaction.core.protection import MIN_WORTHWHILE_TOKENS, SplitPoint, find_splits
from compaction.core.stages.base import (
    ContextDraft,
    PassContext,
    SummaryFailed,
    SummaryOutcome,
    SummaryTask,
)
from compaction.core.transcript import Transcript, TranscriptEntry, change_entry

NEWEST_COUNT = 6  # messages that say what the conversation is about at the moment


def summarize(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """Call the summarizer once, or not at all if nothing is older than the tail.

    If the policy summarizes originals and messages were cut to excerpts, the excerpts stay and the
    summary is added: it covers the whole conversation, the tail too, because it says what is done
    and what remains. The boundary moves as well only if the excerpts leave the context over its
    target. No call is made by hand for so little that it would save nothing. Raises SummaryFailed.
    (Wolffish, The Compaction Flow, steps 2 to 5)
    """
    adds_summary = _can_add_summary(draft, pass_context)
    if adds_summary and pass_context.fits(draft.transcript):
        return _add_summary(draft, pass_context)
    for split in find_splits(draft.transcript, pass_context.limits):
        old_entries = [
            entry
            for entry in draft.transcript.entries
            if entry.seq < split.boundary and entry.seq not in split.exempt_seqs
        ]
        if old_entries and _is_worthwhile(old_entries, pass_context):
            old_seqs = tuple(entry.seq for entry in old_entries)
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


def _is_worthwhile(old_entries: Iterable[TranscriptEntry], pass_context: PassContext) -> bool:
    """Return whether a summary of messages saves something, or is made all the same."""
    limits = pass_context.limits
    must_make_room = limits.is_over_threshold and limits.up_to_seq is None
    if must_make_room or limits.is_rewrite:
        return True
    tokens = pass_context.to_real_tokens(sum(entry.tokens for entry in old_entries))
    return tokens >= MIN_WORTHWHILE_TOKENS


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
        draft.transcript,
        summary=summary.text,
        summarized_up_to=entries[-1].seq,
        untold_seqs=frozenset(),
    )
    return replace(
        draft,
        transcript=next_transcript,
        proposals=summary.proposals,
        proposed_segments=summary.proposed_segments,
        extract_reason=summary.extract_reason,
        refused_seqs=summary.refused_seqs,
    )


def _replace_with_summary(
    draft: ContextDraft, pass_context: PassContext, split: SplitPoint, old_seqs: tuple[int, ...]
) -> ContextDraft:
    transcript = draft.transcript
    if needs_original_summary(draft, pass_context.policy):
        sources = transcript.entries
        last_seq = transcript.entries[-1].seq
        untold_seqs: frozenset[int] = frozenset()
    else:
        sources = tuple(entry for entry in transcript.entries if entry.seq < split.boundary)
        last_seq = transcript.last_summarized_seq
        untold_seqs = _find_pinned_sources(transcript, sources)
        sources = tuple(entry for entry in sources if entry.seq not in untold_seqs)
    summary = _request_summary(draft, pass_context, sources, old_seqs)
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
        untold_seqs=untold_seqs,
    )
    return replace(
        draft,
        transcript=next_transcript,
        compacted_seqs=(*draft.compacted_seqs, *old_seqs),
        proposals=summary.proposals,
        proposed_segments=summary.proposed_segments,
        extract_reason=summary.extract_reason,
        refused_seqs=summary.refused_seqs,
    )


def _find_pinned_sources(
    transcript: Transcript, entries: Iterable[TranscriptEntry]
) -> frozenset[int]:
    """Return the pinned messages that no summary tells of: they are sent as they are.

    Once they are no longer pinned, the next summary tells of them.
    """
    return frozenset(
        entry.seq for entry in entries if entry.pinned and _is_untold(entry, transcript)
    )


def _is_untold(entry: TranscriptEntry, transcript: Transcript) -> bool:
    return entry.seq > transcript.last_summarized_seq or entry.seq in transcript.untold_seqs


def _request_summary(
    draft: ContextDraft,
    pass_context: PassContext,
    entries: Iterable[TranscriptEntry],
    removed_seqs: Iterable[int] = (),
) -> SummaryOutcome:
    """Return a summary of the messages and of the earlier summary. Raises SummaryFailed.

    `removed_seqs` are the messages that the summary replaces, which may be none. If the earlier
    summary covers all of them already, it is returned and no model is called.
    """
    previous = draft.transcript.summary
    last_summarized_seq = draft.transcript.last_summarized_seq
    new_entries = tuple(entry for entry in entries if _is_untold(entry, draft.transcript))
    if previous and not new_entries:
        return SummaryOutcome(text=previous)
    task = SummaryTask(
        previous=previous,
        entries=_select_sources(draft, pass_context, new_entries),
        instructions=pass_context.instructions,
        max_tokens=pass_context.budget.summary_tokens,
        covered_seq=last_summarized_seq,
        newest_entries=draft.transcript.entries[-NEWEST_COUNT:],
        target_count=len({*removed_seqs, *(edit.seq for edit in draft.edits)}),
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
    """Return the messages as the summarizer reads them: as they are shown, or their originals.

    Their files are in them as they were when they were sent: the next request may have less room.
    """
    token_counter = build_counter(pass_context.policy, draft.transcript.family)
    source = pass_context.policy.summary.source
    return tuple(_restore_text(entry, source, token_counter) for entry in entries)


def _restore_text(
    entry: TranscriptEntry, source: str, token_counter: TokenCounter
) -> TranscriptEntry:
    is_shortened = entry.original is not None
    if is_shortened and source == "shown":
        return entry
    text = entry.first_sent or entry.original
    if text is None:
        return entry
    tokens = token_counter.count_entry(entry, content=text)
    return change_entry(entry, content=text, tokens=tokens)
