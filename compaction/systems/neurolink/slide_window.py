"""Leave out the oldest messages after the first ones: the last resort, without a summary."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from compaction.core.estimate import estimate_transcript
from compaction.core.protection import SplitPoint
from compaction.core.tool_pairs import find_piece, find_safe_cuts
from compaction.core.transcript import TranscriptEntry
from compaction.systems.kit.drafts import ContextDraft, StageContext
from compaction.systems.kit.pipeline import add_stage
from compaction.systems.kit.protection import find_splits
from compaction.systems.neurolink.settings import SlideKnobs
from compaction.systems.neurolink.sliding import find_slide_index


def slide_window(draft: ContextDraft, context: StageContext) -> ContextDraft:
    """Move the boundary forward until the context fits; edit nothing.

    The first messages and the pinned ones stay, and so does the newest question: the model needs
    it, and no summary has it. (NeuroLink, Stage 4: Sliding Window Truncation)
    """
    if context.fits(draft.transcript):
        return draft
    question_seqs = _find_newest_question(draft.transcript.entries)
    for split in find_splits(draft.transcript, context.limits):
        exempt_seqs = split.exempt_seqs | question_seqs
        next_draft = _slide_draft(draft, context, replace(split, exempt_seqs=exempt_seqs))
        if next_draft is not draft:
            return next_draft
    return draft


def _find_newest_question(entries: Sequence[TranscriptEntry]) -> frozenset[int]:
    """Return the seqs of the newest user message and of what cannot be separated from it."""
    for index in range(len(entries) - 1, -1, -1):
        if entries[index].role == "user":
            piece = find_piece(entries, find_safe_cuts(entries), index)
            return frozenset(entry.seq for entry in piece)
    return frozenset()


def _slide_draft(draft: ContextDraft, context: StageContext, split: SplitPoint) -> ContextDraft:
    entries = draft.transcript.entries
    start_index = _find_start(draft, context, split)
    left_out_seqs = tuple(
        entry.seq for entry in entries[:start_index] if entry.seq not in split.exempt_seqs
    )
    if not left_out_seqs:
        return draft
    left_out_set = frozenset(left_out_seqs)
    next_transcript = replace(
        draft.transcript,
        entries=tuple(entry for entry in entries if entry.seq not in left_out_set),
        boundary_seq=max(entries[start_index].seq, draft.transcript.boundary_seq or 0),
        # The summary covers no more than before: exempt messages after it are still to be covered.
        summarized_up_to=draft.transcript.last_summarized_seq or None,
        marker=context.policy.get(SlideKnobs).marker,
    )
    return replace(
        draft, transcript=next_transcript, left_out_seqs=(*draft.left_out_seqs, *left_out_seqs)
    )


def _find_start(draft: ContextDraft, context: StageContext, split: SplitPoint) -> int:
    """Return the index of the first message that stays for its age, exempt ones aside."""
    entries = draft.transcript.entries
    stop = next(
        (index for index, entry in enumerate(entries) if entry.seq >= split.boundary),
        len(entries) - 1,
    )
    start = next(
        (index for index, entry in enumerate(entries) if entry.seq not in split.exempt_seqs), stop
    )
    total_estimate = estimate_transcript(draft.transcript, context.policy)
    removable_tokens = _sum_removable_tokens(entries, split.exempt_seqs)

    def fits(index: int) -> bool:
        remaining_estimate = total_estimate - removable_tokens[index]
        return context.to_real_tokens(remaining_estimate) <= context.budget.target

    return find_slide_index(
        find_safe_cuts(entries),
        start=start,
        stop=stop,
        length=len(entries),
        fraction=context.policy.get(SlideKnobs).fraction,
        fits=fits,
    )


def _sum_removable_tokens(
    entries: Sequence[TranscriptEntry], exempt_seqs: frozenset[int]
) -> list[int]:
    """Return for each index the tokens that are saved when everything older goes."""
    tokens = (0 if entry.seq in exempt_seqs else entry.tokens for entry in entries)
    return list(accumulate(tokens, initial=0))


add_stage("slide_window", slide_window)
