"""Carry what users did with a ledger from one session to another, as an export holds it.

So are the lines that a summary model named. All others are not exported: they are recognized again
in the messages.
"""

import re
from collections.abc import Mapping, Sequence

from django.core.exceptions import ValidationError
from django.db.models import Q

from chatcore.models import Session
from chatcore.sessions.sections import SessionSection
from compaction.memory.core.ledger.lines import KEY_CHARS, LINE_CHARS
from compaction.memory.ledger import history, store
from compaction.memory.models import LedgerLine
from compaction.memory.source_messages import map_message_ids
from compaction.models import MAX_SEQ

_TEXT_LIMITS = {
    "text": LINE_CHARS,
    "original_text": LINE_CHARS,
    "role": 16,
    "key": KEY_CHARS,
    "replaces": 32,
}
_PLACE = re.compile(r"(?:\d{1,10}:[0-9a-f]{8})?")
_FLAGS = ("pinned", "is_edited")
_COLUMNS = ("kind", "status", "holds", "seq", *_TEXT_LIMITS, *_FLAGS)


class LedgerSection(SessionSection):
    """The lines that a user wrote, changed, pinned, dropped or deleted, and those of models."""

    name = "ledger"

    def export_items(self, session: Session) -> list[dict[str, object]]:
        rows = LedgerLine.objects.filter(session=session, is_withdrawn=False)
        touched_rows = rows.filter(
            Q(is_edited=True) | Q(pinned=True) | Q(status=LedgerLine.Status.DROPPED) | ~Q(holds="")
        )
        return list(touched_rows.order_by("id").values(*_COLUMNS))

    def import_items(self, session: Session, items: Sequence[object]) -> None:
        if len(items) > store.MAX_LINES:
            raise ValidationError({"": f"There are more than {store.MAX_LINES} lines."})
        rows = [_parse_line(line, f"[{index}]") for index, line in enumerate(items)]
        seqs = {row.seq for row in rows if row.seq is not None}
        message_ids = map_message_ids(session.pk, seqs)
        for index, row in enumerate(rows):
            if row.seq is not None and row.seq not in message_ids:
                raise ValidationError({f"[{index}].seq": "There is no such message in the file."})
            row.session_id = session.pk
        LedgerLine.objects.bulk_create(rows, batch_size=store.BATCH_SIZE)

    def find_violations(self, session: Session) -> list[str]:
        return history.find_violations(session.pk)


def _parse_line(line: object, path: str) -> LedgerLine:
    if not isinstance(line, Mapping):
        raise ValidationError({path: "It must be an object."})
    values = {name: line[name] for name in _COLUMNS if name in line}
    checks = {
        "kind": values.get("kind") in LedgerLine.Kind.values,
        "status": values.get("status") in LedgerLine.Status.values,
        "replaces": bool(_PLACE.fullmatch(values.get("replaces") or "")),
        "holds": values.get("holds", "") in ("", *LedgerLine.Holds.values),
        "seq": _is_number(values.get("seq")),
        **{name: _is_text(values.get(name, ""), most) for name, most in _TEXT_LIMITS.items()},
        **{name: isinstance(values.get(name, False), bool) for name in _FLAGS},
    }
    for name, is_valid in checks.items():
        if not is_valid:
            raise ValidationError({f"{path}.{name}": "It must be as an export contains it."})
    return LedgerLine(**values)


def _is_number(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_SEQ


def _is_text(value: object, most_chars: int) -> bool:
    return isinstance(value, str) and len(value) <= most_chars
