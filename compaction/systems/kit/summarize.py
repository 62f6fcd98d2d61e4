"""Replace what is older than the protected tail by one summary, or add one beside excerpts."""

from collections.abc import Iterable
from dataclasses import replace

from compaction.core.estimate import estimate_transcript
from compaction.core.pass_context import list_sources, replace_entries
from compaction.core.policy import Policy
from compaction.core.protection import SplitPoint
from compaction.core.summary import SummaryOutcome
from compaction.core.transcript import TranscriptEntry
from compaction.systems.kit.drafts import ContextDraft, StageContext
from compaction.systems.kit.protection import find_splits
from compaction.systems.kit.settings import WritingKnobs


def summarize(draft: ContextDraft, context: StageContext) -> ContextDraft:
    """Call the summarizer once, or not at all if nothing is older than the tail.

    If the policy summarizes originals and messages were cut to excerpts, the excerpts stay and the
    summary is added: it covers the whole conversation, the tail too, because it says what is done
    and what remains. The boundary moves as well only if the excerpts leave the context over its
    target. Raises SummaryFailed. (Wolffish, The Compaction Flow, steps 2 to 5)
    """
    adds_summary = _can_add_summary(draft, context)
    if adds_summary and context.fits(draft.transcript):
        return _add_summary(draft, context)
    splits = find_splits(draft.transcript, context.limits)
    found = context.find_worthwhile_split(draft.transcript, splits)
    if found is not None:
        return _replace_with_summary(draft, context, *found)
    return _add_summary(draft, context) if adds_summary else draft


def needs_original_summary(draft: ContextDraft, policy: Policy) -> bool:
    """Return whether this pass cut messages whose whole text the policy wants summarized."""
    if policy.get(WritingKnobs).source != "originals":
        return False
    return any(edit.kind == "excerpted" for edit in draft.edits)


def _can_add_summary(draft: ContextDraft, context: StageContext) -> bool:
    """Return whether a summary belongs beside the excerpts, and leaves the context smaller."""
    if not needs_original_summary(draft, context.policy):
        return False
    bare_transcript = replace(draft.transcript, summary=None)
    bare_estimate = estimate_transcript(bare_transcript, context.policy)
    full_estimate = bare_estimate + context.budget.summary_tokens
    return context.to_real_tokens(full_estimate) < context.measurement.tokens


def _add_summary(draft: ContextDraft, context: StageContext) -> ContextDraft:
    entries = draft.transcript.entries
    summary = _request_summary(draft, context, entries)
    next_transcript = replace(
        draft.transcript,
        summary=summary.text,
        summarized_up_to=entries[-1].seq,
        untold_seqs=frozenset(),
    )
    return replace(draft, transcript=next_transcript, summary=summary)


def _replace_with_summary(
    draft: ContextDraft, context: StageContext, split: SplitPoint, old_seqs: tuple[int, ...]
) -> ContextDraft:
    transcript = draft.transcript
    sources: Iterable[TranscriptEntry]
    if needs_original_summary(draft, context.policy):
        sources, untold_seqs = transcript.entries, frozenset[int]()
        last_seq = transcript.entries[-1].seq
    else:
        sources, untold_seqs = list_sources(transcript, split)
        last_seq = transcript.last_summarized_seq
    summary = _request_summary(draft, context, sources, old_seqs)
    next_transcript = replace_entries(transcript, split, summary.text, last_seq=last_seq)
    return replace(
        draft,
        transcript=replace(next_transcript, untold_seqs=untold_seqs),
        compacted_seqs=(*draft.compacted_seqs, *old_seqs),
        summary=summary,
    )


def _request_summary(
    draft: ContextDraft,
    context: StageContext,
    entries: Iterable[TranscriptEntry],
    removed_seqs: Iterable[int] = (),
) -> SummaryOutcome:
    """Return a summary of the messages and of the earlier one. Raises SummaryFailed.

    `removed_seqs` are the messages that the summary replaces, which may be none.
    """
    return context.request_summary(
        draft.transcript,
        entries,
        target_count=len({*removed_seqs, *(edit.seq for edit in draft.edits)}),
        restores_originals=context.policy.get(WritingKnobs).source == "originals",
    )
