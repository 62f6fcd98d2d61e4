"""Leave out the oldest messages after the first ones, and say so: the last resort, for no summary tells of them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from compaction.core.estimate import estimate_transcript
from compaction.core.protection import SplitPoint, find_splits
from compaction.core.sliding import find_slide_index
from compaction.core.stages.base import ContextDraft, PassContext
from compaction.core.tool_pairs import find_safe_cuts, split_entries
from compaction.core.transcript import TranscriptEntry


def slide_window(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """Moves the boundary and edits nothing. Nothing where all fits; the first messages and pinned ones stay (NeuroLink, Stage 4).

    The newest question stays too, for no summary tells of it.
    """
    if pass_context.fits(draft.transcript):
        return draft
    question_seqs = _find_newest_question(draft.transcript.entries)
    for split in find_splits(draft.transcript, pass_context.limits):
        next_draft = _slide_draft(
            draft, pass_context, replace(split, exempt_seqs=split.exempt_seqs | question_seqs)
        )
        if next_draft is not draft:
            return next_draft
    return draft


def _find_newest_question(entries: Sequence[TranscriptEntry]) -> frozenset[int]:
    newest_user_seq = max((entry.seq for entry in entries if entry.role == "user"), default=None)
    return frozenset(
        entry.seq
        for piece in split_entries(entries)
        if any(member.seq == newest_user_seq for member in piece)
        for entry in piece
    )


def _slide_draft(draft: ContextDraft, pass_context: PassContext, split: SplitPoint) -> ContextDraft:
    entries = draft.transcript.entries
    stop = next(
        (index for index, entry in enumerate(entries) if entry.seq >= split.boundary),
        len(entries) - 1,
    )
    start = next(
        (index for index, entry in enumerate(entries) if entry.seq not in split.exempt_seqs), stop
    )
    total_estimate, removable_tokens = (
        estimate_transcript(draft.transcript, pass_context.policy),
        _sum_removable_tokens(entries, split.exempt_seqs),
    )
    start_index = find_slide_index(
        find_safe_cuts(entries),
        start=start,
        stop=stop,
        length=len(entries),
        fraction=pass_context.policy.slide.fraction,
        fits=lambda start_index: (
            pass_context.to_real_tokens(total_estimate - removable_tokens[start_index])
            <= pass_context.budget.target
        ),
    )
    left_out_seqs = tuple(
        entry.seq for entry in entries[:start_index] if entry.seq not in split.exempt_seqs
    )
    if not left_out_seqs:
        return draft
    left_out_set = frozenset(left_out_seqs)
    remaining_entries = tuple(entry for entry in entries if entry.seq not in left_out_set)
    boundary = max(entries[start_index].seq, draft.transcript.boundary_seq or 0)
    last_summarized_seq = (
        draft.transcript.last_summarized_seq or None
    )  # what is kept from after that is yet to be told
    next_transcript = replace(
        draft.transcript,
        entries=remaining_entries,
        boundary_seq=boundary,
        summarized_up_to=last_summarized_seq,
        marker=pass_context.policy.slide.marker,
    )
    return replace(
        draft, transcript=next_transcript, left_out_seqs=(*draft.left_out_seqs, *left_out_seqs)
    )


def _sum_removable_tokens(
    entries: Sequence[TranscriptEntry], exempt_seqs: frozenset[int]
) -> list[int]:
    """For each index the tokens of what goes when what is older goes."""
    return list(
        accumulate(
            (0 if entry.seq in exempt_seqs else entry.tokens for entry in entries), initial=0
        )
    )
