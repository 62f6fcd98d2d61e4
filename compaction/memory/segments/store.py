"""Store the segments of summaries, find those of a summary, and forget or copy them.

Everything here that writes is called in a transaction that holds the session's row.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import cast
from uuid import UUID

from django.db.models import QuerySet

from compaction.core.estimate import estimate_summary
from compaction.core.outcome import Segment, SegmentKind
from compaction.core.policy import Policy
from compaction.memory.models import LeafComposition, SummaryLeaf
from compaction.models import CompactionRun
from compaction.sessions.facts import load_session_facts
from compaction.sessions.fingerprint import compute_fingerprint


def load_segments(
    session_id: UUID, summary: str | None, *, covered_seq: int
) -> tuple[Segment, ...]:
    """Return the segments that a summary is composed of, the oldest first.

    A summary that was not composed is one segment of kind `text`, which covers the messages up to
    `covered_seq`: a user edited it, or it came with an import or from another policy.
    """
    if not summary:
        return ()
    composition = _select_composition(session_id, summary).first()
    leaf_ids: list[int] = composition.leaf_ids if composition else []
    rows = SummaryLeaf.objects.filter(session_id=session_id).in_bulk(leaf_ids)
    if leaf_ids and len(rows) == len(leaf_ids):
        return tuple(_build_segment(rows[segment_id]) for segment_id in leaf_ids)
    first_seq = min(1, covered_seq)
    return (Segment(first_seq=first_seq, last_seq=covered_seq, text=summary, kind="text"),)


def load_span_segments(session_id: UUID, *, first_seq: int, last_seq: int) -> list[Segment]:
    """Return all segments that were written of spans of these messages, also in earlier runs."""
    rows = SummaryLeaf.objects.filter(
        session_id=session_id,
        kind=SummaryLeaf.Kind.SPAN,
        first_seq__gte=first_seq,
        last_seq__lte=last_seq,
    )
    return [_build_segment(row) for row in rows]


def store_segments(
    run: CompactionRun, summary: str, segments: Sequence[Segment], *, policy: Policy
) -> None:
    """Store the new segments of a run's summary, and of which ones it is composed."""
    new_rows = {
        position: _build_row(segment, run, policy)
        for position, segment in enumerate(segments)
        if segment.id is None
    }
    SummaryLeaf.objects.bulk_create(new_rows.values())
    leaf_ids = [
        new_rows[position].pk if position in new_rows else segment.id
        for position, segment in enumerate(segments)
    ]
    LeafComposition.objects.update_or_create(
        session_id=run.session_id,
        fingerprint=compute_fingerprint(summary),
        defaults={"leaf_ids": leaf_ids, "last_seq": segments[-1].last_seq},
    )


def forget_segments(session_id: UUID, seqs: Collection[int]) -> None:
    """Delete every segment that was written from one of these messages."""
    ordered_seqs = sorted(seqs)
    segments = SummaryLeaf.objects.filter(session_id=session_id)
    ranges = segments.filter(
        first_seq__lte=ordered_seqs[-1], last_seq__gte=ordered_seqs[0]
    ).values_list("pk", "first_seq", "last_seq")
    leaf_ids = [pk for pk, first, last in ranges if _has_seq_between(ordered_seqs, first, last)]
    segments.filter(pk__in=leaf_ids).delete()
    # Segments follow each other without a gap, so whatever reaches further has lost one of them.
    LeafComposition.objects.filter(session_id=session_id, last_seq__gte=ordered_seqs[0]).delete()


def copy_segments(session_id: UUID, *, target_id: UUID) -> None:
    """Give a fork the segments that its summary, a copy of one of this session, is composed of."""
    facts = load_session_facts(target_id)
    if facts is None or not facts.summary:
        return
    composition = _select_composition(session_id, facts.summary).first()
    if composition is None:
        return
    rows = SummaryLeaf.objects.filter(session_id=session_id).in_bulk(composition.leaf_ids)
    if len(rows) < len(composition.leaf_ids):
        return
    copies = [rows[segment_id] for segment_id in composition.leaf_ids]
    for copy in copies:
        copy.pk = None
        copy.session_id = target_id
        copy.run_id = None
    SummaryLeaf.objects.bulk_create(copies)
    LeafComposition.objects.create(
        session_id=target_id,
        fingerprint=composition.fingerprint,
        leaf_ids=[copy.pk for copy in copies],
        last_seq=composition.last_seq,
    )


def _select_composition(session_id: UUID, summary: str) -> QuerySet[LeafComposition]:
    return LeafComposition.objects.filter(
        session_id=session_id, fingerprint=compute_fingerprint(summary)
    )


def _has_seq_between(ordered_seqs: Sequence[int], first_seq: int, last_seq: int) -> bool:
    position = bisect_left(ordered_seqs, first_seq)
    return position < len(ordered_seqs) and ordered_seqs[position] <= last_seq


def _build_segment(row: SummaryLeaf) -> Segment:
    return Segment(
        first_seq=row.first_seq,
        last_seq=row.last_seq,
        text=row.text,
        kind=cast(SegmentKind, row.kind),
        fingerprint=row.fingerprint,
        id=row.pk,
    )


def _build_row(segment: Segment, run: CompactionRun, policy: Policy) -> SummaryLeaf:
    return SummaryLeaf(
        session_id=run.session_id,
        run=run,
        kind=segment.kind,
        first_seq=segment.first_seq,
        last_seq=segment.last_seq,
        text=segment.text,
        tokens=estimate_summary(segment.text, policy),
        fingerprint=segment.fingerprint,
    )
