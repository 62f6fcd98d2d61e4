"""Store the leaves of summaries, find those of a summary, and forget or copy them.

Everything here that writes is called in a transaction that holds the session's row.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import cast
from uuid import UUID

from django.db.models import QuerySet

from compaction.core.estimate import estimate_summary
from compaction.core.leaf import Leaf, LeafKind
from compaction.core.policy import Policy
from compaction.memory.models import LeafComposition, SummaryLeaf
from compaction.models import CompactionRun
from compaction.sessions.facts import load_session_facts
from compaction.sessions.fingerprint import compute_fingerprint


def load_leaves(session_id: UUID, summary: str | None, *, covered_seq: int) -> tuple[Leaf, ...]:
    """Return the leaves that a summary is composed of, the oldest first.

    A summary that was not composed is one leaf of kind `text`, which covers the messages up to
    `covered_seq`: a person edited it, or it came with an import or from another policy.
    """
    if not summary:
        return ()
    composition = _select_composition(session_id, summary).first()
    leaf_ids: list[int] = composition.leaf_ids if composition else []
    rows = SummaryLeaf.objects.filter(session_id=session_id).in_bulk(leaf_ids)
    if leaf_ids and len(rows) == len(leaf_ids):
        return tuple(_build_leaf(rows[leaf_id]) for leaf_id in leaf_ids)
    first_seq = min(1, covered_seq)
    return (Leaf(first_seq=first_seq, last_seq=covered_seq, text=summary, kind="text"),)


def load_span_leaves(session_id: UUID, *, first_seq: int, last_seq: int) -> list[Leaf]:
    """Return all leaves that were written of spans of these messages, also in earlier runs."""
    rows = SummaryLeaf.objects.filter(
        session_id=session_id,
        kind=SummaryLeaf.Kind.SPAN,
        first_seq__gte=first_seq,
        last_seq__lte=last_seq,
    )
    return [_build_leaf(row) for row in rows]


def store_leaves(
    run: CompactionRun, summary: str, leaves: Sequence[Leaf], *, policy: Policy
) -> None:
    """Store the new ones of the leaves that a run's summary is composed of, and which they are."""
    new_rows = {
        position: _build_row(leaf, run, policy)
        for position, leaf in enumerate(leaves)
        if leaf.id is None
    }
    SummaryLeaf.objects.bulk_create(new_rows.values())
    leaf_ids = [
        new_rows[position].pk if position in new_rows else leaf.id
        for position, leaf in enumerate(leaves)
    ]
    LeafComposition.objects.update_or_create(
        session_id=run.session_id,
        fingerprint=compute_fingerprint(summary),
        defaults={"leaf_ids": leaf_ids, "last_seq": leaves[-1].last_seq},
    )


def forget_leaves(session_id: UUID, seqs: Collection[int]) -> None:
    """Delete every leaf that was written from one of these messages."""
    ordered_seqs = sorted(seqs)
    leaves = SummaryLeaf.objects.filter(session_id=session_id)
    ranges = leaves.filter(
        first_seq__lte=ordered_seqs[-1], last_seq__gte=ordered_seqs[0]
    ).values_list("pk", "first_seq", "last_seq")
    leaf_ids = [pk for pk, first, last in ranges if _has_seq_between(ordered_seqs, first, last)]
    leaves.filter(pk__in=leaf_ids).delete()
    # Leaves follow each other without a gap, so whatever reaches further has lost one of them.
    LeafComposition.objects.filter(session_id=session_id, last_seq__gte=ordered_seqs[0]).delete()


def copy_leaves(session_id: UUID, *, target_id: UUID) -> None:
    """Give a fork the leaves that its summary, a copy of one of this session, is composed of."""
    facts = load_session_facts(target_id)
    if facts is None or not facts.summary:
        return
    composition = _select_composition(session_id, facts.summary).first()
    if composition is None:
        return
    rows = SummaryLeaf.objects.filter(session_id=session_id).in_bulk(composition.leaf_ids)
    if len(rows) < len(composition.leaf_ids):
        return
    copies = [rows[leaf_id] for leaf_id in composition.leaf_ids]
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


def _build_leaf(row: SummaryLeaf) -> Leaf:
    return Leaf(
        first_seq=row.first_seq,
        last_seq=row.last_seq,
        text=row.text,
        kind=cast(LeafKind, row.kind),
        fingerprint=row.fingerprint,
        id=row.pk,
    )


def _build_row(leaf: Leaf, run: CompactionRun, policy: Policy) -> SummaryLeaf:
    return SummaryLeaf(
        session_id=run.session_id,
        run=run,
        kind=leaf.kind,
        first_seq=leaf.first_seq,
        last_seq=leaf.last_seq,
        text=leaf.text,
        tokens=estimate_summary(leaf.text, policy),
        fingerprint=leaf.fingerprint,
    )
