"""Store the lines of a session's ledger, and merge new ones into them.

Everything here that writes is called in a transaction that holds the session's row.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from compaction.memory.core.ledger import lines as core_lines
from compaction.memory.core.ledger.merging import merge_lines
from compaction.memory.models import LedgerLine
from compaction.models import SessionState

MAX_LINES = 2_000  # of a session; beyond them the oldest values make room
BATCH_SIZE = 200  # rows that one statement writes

Status = LedgerLine.Status


def select_lines(session_id: UUID) -> QuerySet[LedgerLine]:
    """Select the lines that users see. Deleted ones have no text."""
    return LedgerLine.objects.filter(session=session_id, is_withdrawn=False).exclude(text="")


def select_distinct_lines(session_id: UUID) -> QuerySet[LedgerLine]:
    """Select the lines that users see, each sentence of a message once.

    A sentence may be a rule and hold exact values besides.
    """
    earlier_lines = select_lines(session_id).filter(
        seq=OuterRef("seq"),
        original_text=OuterRef("original_text"),
        status=OuterRef("status"),
        pk__lt=OuterRef("pk"),
    )
    is_repetition = Exists(earlier_lines.exclude(original_text=""))
    return select_lines(session_id).exclude(is_repetition)


def has_lines(session_id: UUID) -> bool:
    """Return True if the session has ever had a line."""
    return LedgerLine.objects.filter(session=session_id).exists()


def to_core_line(row: LedgerLine) -> core_lines.LedgerLine:
    """Return a stored line as the core has it, with the text that is shown."""
    return core_lines.LedgerLine(
        kind=row.kind,  # type: ignore[arg-type]  # the choices are the core's kinds
        text=row.text,
        seq=row.seq or 0,
        role=row.role,
        key=row.key,
        status=row.status,  # type: ignore[arg-type]  # so are these
        superseded_by=row.superseded_by,
        pinned=row.pinned,
        holds=row.holds,  # type: ignore[arg-type]  # and these
        replaces=row.replaces,
    )


def load_lines(session_id: UUID) -> list[core_lines.LedgerLine]:
    """Return all that was said word for word, superseded lines too, but no dropped ones."""
    rows = select_lines(session_id).exclude(status=Status.DROPPED)
    return [to_core_line(row) for row in rows.order_by("seq", "id")]


def add_recognized_lines(session_id: UUID, new_lines: Collection[core_lines.LedgerLine]) -> None:
    """Merge recognized lines into the stored ones. Adding them twice has the effect of once.

    What a user edited, dropped or deleted stays as it is, and does not come back.
    """
    new_lines = [replace(line, key=_sort_key(line.key)) for line in new_lines]
    rows = _load_rows_by_key(session_id, {line.key for line in new_lines})
    refused_texts = {_get_text_key(row.kind, row.original_text) for row in rows if _is_final(row)}
    open_rows = [row for row in rows if not _is_final(row)]
    merged_lines = merge_lines(
        [_to_original_line(row) for row in open_rows],
        [line for line in new_lines if _get_text_key(line.kind, line.text) not in refused_texts],
    )
    _store_merged_lines(session_id, open_rows, merged_lines)
    _prune_surplus(session_id)


def add_named_lines(session_id: UUID, lines: Collection[core_lines.LedgerLine]) -> None:
    """Store lines that a summary model named and code found in their messages.

    A sentence that is a line already gets the kind that the model says. What a user edited, dropped
    or deleted stays as it is.
    """
    rows = _select_recognized_rows(session_id).filter(seq__in={line.seq for line in lines})
    rows_by_place: dict[tuple[int | None, str], list[LedgerLine]] = {}
    for row in rows:
        place = (row.seq, core_lines.normalize_text(row.original_text))
        rows_by_place.setdefault(place, []).append(row)
    for line in lines:
        same_rows = rows_by_place.setdefault((line.seq, core_lines.normalize_text(line.text)), [])
        if any(map(_is_final, same_rows)):
            continue
        known_row = _choose_row(same_rows, line.kind)
        if known_row is None and line.holds == "answer" and not line.replaces:
            continue
        row = known_row or _build_row(session_id, replace(line, key=_sort_key(line.key)))
        if known_row is None:
            same_rows.append(row)
        row.kind, row.holds = line.kind, line.holds
        row.replaces = line.replaces or row.replaces
        row.save()
    _prune_surplus(session_id)


def _choose_row(rows: Collection[LedgerLine], kind: str) -> LedgerLine | None:
    """Return the row that a line of this kind is; exact values beside it stay what they are."""
    same_kind = [row for row in rows if row.kind == kind]
    others = [row for row in rows if row.kind != LedgerLine.Kind.VALUE]
    return next(iter([*same_kind, *others]), None)


def end_lines(session_id: UUID, lines: Collection[core_lines.LedgerLine]) -> None:
    """Let lines that were never meant to last hold for their answer alone."""
    for line in lines:
        rows = _select_recognized_rows(session_id).filter(
            seq=line.seq, original_text=line.text, is_edited=False, pinned=False
        )
        rows.exclude(kind=LedgerLine.Kind.VALUE).update(holds=LedgerLine.Holds.ANSWER)


def settle_lines(session_id: UUID, keys: Collection[str]) -> None:
    """Decide again which of the lines with these keys are superseded, as some came or went."""
    rows = [row for row in _load_rows_by_key(session_id, keys) if not _is_final(row)]
    lines = [replace(_to_original_line(row), status="current", superseded_by=None) for row in rows]
    _store_merged_lines(session_id, rows, merge_lines((), lines))


def move_ledger_seq(session_id: UUID, *, from_seq: int, to_seq: int) -> None:
    """Record how far the messages are read, unless another process has recorded it meanwhile."""
    states = SessionState.objects.filter(pk=session_id)
    if states.filter(ledger_seq=from_seq).update(ledger_seq=to_seq) or from_seq:
        return
    SessionState.objects.bulk_create(
        [SessionState(session_id=session_id, ledger_seq=to_seq)], ignore_conflicts=True
    )


def _is_final(row: LedgerLine) -> bool:
    """Return True for a line that a user decided about."""
    return row.is_edited or row.status == Status.DROPPED


def _sort_key(key: str) -> str:
    """Return a key with its words in order, because the core compares them in any."""
    return " ".join(sorted(set(key.split())))


def _get_text_key(kind: str, text: str) -> tuple[str, str]:
    return kind, core_lines.normalize_text(text)


def _to_original_line(row: LedgerLine) -> core_lines.LedgerLine:
    return replace(to_core_line(row), text=row.original_text)


def _select_recognized_rows(session_id: UUID) -> QuerySet[LedgerLine]:
    rows = LedgerLine.objects.filter(session=session_id, is_withdrawn=False)
    return rows.exclude(original_text="").order_by("seq", "id")


def _load_rows_by_key(session_id: UUID, keys: Collection[str]) -> list[LedgerLine]:
    """Load the lines that new ones may repeat or supersede: those that speak of the same."""
    return list(_select_recognized_rows(session_id).filter(key__in=keys))


def _store_merged_lines(
    session_id: UUID, rows: Iterable[LedgerLine], lines: Iterable[core_lines.LedgerLine]
) -> None:
    """Store lines that were merged from these rows and new ones."""
    rows_by_line = {(row.kind, row.seq, row.key, row.original_text): row for row in rows}
    new_rows: list[LedgerLine] = []
    changed_rows: list[LedgerLine] = []
    for line in lines:
        row = rows_by_line.get((line.kind, line.seq, line.key, line.text))
        if row is None:
            new_rows.append(_build_row(session_id, line))
        elif (row.status, row.superseded_by) != (line.status, line.superseded_by):
            row.status = line.status
            row.superseded_by = line.superseded_by
            changed_rows.append(row)
    LedgerLine.objects.bulk_create(new_rows, batch_size=BATCH_SIZE)
    LedgerLine.objects.bulk_update(changed_rows, ["status", "superseded_by"], batch_size=BATCH_SIZE)


def _build_row(session_id: UUID, line: core_lines.LedgerLine) -> LedgerLine:
    return LedgerLine(
        session_id=session_id,
        kind=line.kind,
        text=line.text,
        original_text=line.text,
        seq=line.seq,
        role=line.role,
        key=line.key,
        status=line.status,
        superseded_by=line.superseded_by,
        holds=line.holds,
        replaces=line.replaces,
    )


def _prune_surplus(session_id: UUID) -> None:
    """Delete the lines beyond MAX_LINES: superseded ones first, then the oldest values."""
    rows = LedgerLine.objects.filter(session=session_id)
    surplus = rows.count() - MAX_LINES
    if surplus <= 0:
        return
    candidates = rows.filter(pinned=False, is_edited=False).exclude(original_text="")
    candidates = candidates.exclude(status=Status.DROPPED).filter(
        Q(status=Status.SUPERSEDED) | Q(kind=LedgerLine.Kind.VALUE)
    )
    oldest_ids = candidates.order_by("-status", "seq", "id").values_list("pk", flat=True)
    rows.filter(pk__in=list(oldest_ids[:surplus])).delete()
