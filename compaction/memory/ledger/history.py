"""Keep the ledger true to its messages: when they are deleted, superseded or copied to a fork.

Everything here that writes is called in a transaction that holds the session's row.
"""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q

from chatcore.context.live_messages import load_current_seqs
from compaction.memory.ledger import store
from compaction.memory.models import LedgerLine
from compaction.memory.source_messages import erase_background, map_message_ids
from compaction.models import SessionState


def forget_messages(session_id: UUID, seqs: Collection[int]) -> bool:
    """Delete the lines of deleted messages, and their words everywhere. Return True if any were.

    Other messages may say the same, so everything after the first of them is read again.
    """
    rows = _load_rows_of_messages(session_id, seqs)
    if not rows:
        return False
    LedgerLine.objects.filter(pk__in=[row.pk for row in rows]).delete()
    texts = {text for row in rows for text in (row.text, row.original_text) if text}
    erase_background(session_id, texts)
    _forget_replaced(session_id, seqs)
    store.settle_lines(session_id, {row.key for row in rows})
    _read_again(session_id, after_seq=min(seqs) - 1)
    return True


def _forget_replaced(session_id: UUID, seqs: Collection[int]) -> None:
    """Clear the places of lines that were deleted, which are hashes of their texts."""
    rows = LedgerLine.objects.filter(session=session_id).exclude(replaces="")
    places = rows.values_list("pk", "replaces")
    obsolete_ids = [pk for pk, place in places if int(place.partition(":")[0]) in seqs]
    LedgerLine.objects.filter(pk__in=obsolete_ids).update(replaces="")


def withdraw_messages(session_id: UUID, seqs: Collection[int]) -> None:
    """Take the lines of superseded messages out, and bring back those that are current again."""
    _read_again(session_id, after_seq=min(seqs) - 1)
    rows = _load_rows_of_messages(session_id, seqs)
    if not rows:
        return
    current_seqs = load_current_seqs(session_id, min(seqs), max(seqs))
    changed_rows = [row for row in rows if row.is_withdrawn == (row.seq in current_seqs)]
    for row in changed_rows:
        row.is_withdrawn = not row.is_withdrawn
    LedgerLine.objects.bulk_update(changed_rows, ["is_withdrawn"], batch_size=store.BATCH_SIZE)
    store.settle_lines(session_id, {row.key for row in changed_rows})


def copy_lines(session_id: UUID, *, target_id: UUID, last_seq: int) -> bool:
    """Give another session the lines of the messages up to this number, and those of none.

    Returns True if there are any.
    """
    rows = list(
        LedgerLine.objects.filter(session=session_id, is_withdrawn=False)
        .filter(Q(seq=None) | Q(seq__lte=last_seq))
        .order_by("id")
    )
    obsolete_keys = {row.key for row in rows if (row.superseded_by or 0) > last_seq}
    for row in rows:
        row.pk = None
        row.session_id = target_id
    LedgerLine.objects.bulk_create(rows, batch_size=store.BATCH_SIZE)
    store.settle_lines(target_id, obsolete_keys)
    ledger_seqs = SessionState.objects.filter(pk=session_id).values_list("ledger_seq", flat=True)
    read_seq = min(ledger_seqs.first() or 0, last_seq)
    if read_seq:
        store.move_ledger_seq(target_id, from_seq=0, to_seq=read_seq)
    return bool(rows)


def find_violations(session_id: UUID) -> list[str]:
    """Return a sentence for each line whose message is not what the line says."""
    rows = LedgerLine.objects.filter(session=session_id, seq__isnull=False)
    lines = list(rows.order_by("id").values_list("pk", "seq", "is_withdrawn"))
    if not lines:
        return []
    seqs = {seq for _, seq, _ in lines if seq}
    stored_seqs = map_message_ids(session_id, seqs).keys()
    current_seqs = load_current_seqs(session_id, min(seqs), max(seqs))
    violations = []
    for pk, seq, is_withdrawn in lines:
        if seq not in stored_seqs:
            violations.append(f"ledger line {pk} is of message {seq}, which does not exist")
        elif is_withdrawn == (seq in current_seqs):
            violations.append(f"ledger line {pk} does not follow its message {seq}")
    return violations


def _load_rows_of_messages(session_id: UUID, seqs: Collection[int]) -> list[LedgerLine]:
    if not seqs:
        return []
    # A range, because a list of many thousand numbers exceeds what a database takes as parameters.
    rows = LedgerLine.objects.filter(session=session_id, seq__range=(min(seqs), max(seqs)))
    return [row for row in rows if row.seq in seqs]


def _read_again(session_id: UUID, *, after_seq: int) -> None:
    states = SessionState.objects.filter(pk=session_id, ledger_seq__gt=after_seq)
    states.update(ledger_seq=after_seq)
