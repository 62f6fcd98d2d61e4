"""Leave out the oldest messages after the first ones, and say so: the last resort, for no summary tells of them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from compaction.core.estimate import estimated
from compaction.core.protection import Split, splits
from compaction.core.sliding import slide_to
from compaction.core.stages.base import Draft, Work
from compaction.core.tool_pairs import groups, safe_cuts
from compaction.core.transcript import Entry


def slide_window(draft: Draft, work: Work) -> Draft:
    """Moves the boundary and edits nothing. Nothing where all fits; the first messages and pinned ones stay (NeuroLink, Stage 4).

    The newest question stays too, for no summary tells of it.
    """
    if work.fits(draft.transcript):
        return draft
    question = _newest_question(draft.transcript.entries)
    for split in splits(draft.transcript, work.limits):
        slid = _slid(draft, work, replace(split, kept=split.kept | question))
        if slid is not draft:
            return slid
    return draft


def _newest_question(entries: Sequence[Entry]) -> frozenset[int]:
    asked = max((entry.seq for entry in entries if entry.role == "user"), default=None)
    return frozenset(
        entry.seq
        for piece in groups(entries)
        if any(each.seq == asked for each in piece)
        for entry in piece
    )


def _slid(draft: Draft, work: Work, split: Split) -> Draft:
    entries = draft.transcript.entries
    stop = next(
        (index for index, entry in enumerate(entries) if entry.seq >= split.boundary),
        len(entries) - 1,
    )
    start = next(
        (index for index, entry in enumerate(entries) if entry.seq not in split.kept), stop
    )
    whole, leaves = estimated(draft.transcript, work.policy), _tokens_before(entries, split.kept)
    place = slide_to(
        safe_cuts(entries),
        start=start,
        stop=stop,
        length=len(entries),
        fraction=work.policy.slide.fraction,
        fits=lambda place: work.size(whole - leaves[place]) <= work.budget.target,
    )
    gone = tuple(entry.seq for entry in entries[:place] if entry.seq not in split.kept)
    if not gone:
        return draft
    seqs = frozenset(gone)
    kept = tuple(entry for entry in entries if entry.seq not in seqs)
    boundary = max(entries[place].seq, draft.transcript.boundary_seq or 0)
    told = draft.transcript.told_up_to or None  # what is kept from after that is yet to be told
    after = replace(
        draft.transcript,
        entries=kept,
        boundary_seq=boundary,
        summarized_up_to=told,
        marker=work.policy.slide.marker,
    )
    return replace(draft, transcript=after, left_out=(*draft.left_out, *gone))


def _tokens_before(entries: Sequence[Entry], kept: frozenset[int]) -> list[int]:
    """For each index the tokens of what goes when what is older goes."""
    return list(
        accumulate((0 if entry.seq in kept else entry.tokens for entry in entries), initial=0)
    )
