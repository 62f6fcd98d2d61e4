"""Carry the segments of a session's summary to another session, as an export holds them.

Without them an imported summary would be one text, which no later run can compose anew.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError

from chatcore.models import Session
from chatcore.sessions.sections import SessionSection
from compaction.memory.models import LeafComposition, SummaryLeaf
from compaction.sessions.facts import load_session_facts
from compaction.sessions.fingerprint import compute_fingerprint

MAX_SEGMENTS = 1_000
MAX_SEGMENT_CHARS = 200_000
_COLUMNS = ("kind", "first_seq", "last_seq", "text", "tokens", "fingerprint")
_FINGERPRINT_CHARS = 64


class SegmentSection(SessionSection):
    """The segments that the summary in force is composed of, in its order."""

    name = "leaves"

    def export_items(self, session: Session) -> list[dict[str, object]]:
        composition = _find_composition(session.pk)
        if composition is None:
            return []
        rows = SummaryLeaf.objects.filter(session=session).in_bulk(composition.leaf_ids)
        if len(rows) < len(composition.leaf_ids):
            return []
        segments = [rows[segment_id] for segment_id in composition.leaf_ids]
        return [{name: getattr(segment, name) for name in _COLUMNS} for segment in segments]

    def import_items(self, session: Session, items: Sequence[object]) -> None:
        if len(items) > MAX_SEGMENTS:
            raise ValidationError({"": f"There are more than {MAX_SEGMENTS} segments."})
        rows = [_parse_segment(segment, f"[{index}]") for index, segment in enumerate(items)]
        facts = load_session_facts(session.pk)
        if not rows or facts is None or not facts.summary:
            return
        for row in rows:
            row.session_id = session.pk
        SummaryLeaf.objects.bulk_create(rows)
        LeafComposition.objects.create(
            session_id=session.pk,
            fingerprint=compute_fingerprint(facts.summary),
            leaf_ids=[row.pk for row in rows],
            last_seq=rows[-1].last_seq,
        )


def _find_composition(session_id: UUID) -> LeafComposition | None:
    facts = load_session_facts(session_id)
    if facts is None or not facts.summary:
        return None
    fingerprint = compute_fingerprint(facts.summary)
    return LeafComposition.objects.filter(session=session_id, fingerprint=fingerprint).first()


def _parse_segment(segment: object, path: str) -> SummaryLeaf:
    if not isinstance(segment, Mapping):
        raise ValidationError({path: "It must be an object."})
    values: dict[str, Any] = {name: segment.get(name) for name in _COLUMNS}
    first_seq, last_seq = values["first_seq"], values["last_seq"]
    is_ordered = _is_number(first_seq) and _is_number(last_seq) and first_seq <= last_seq
    checks = {
        "kind": values["kind"] in SummaryLeaf.Kind.values,
        "first_seq": _is_number(first_seq),
        "last_seq": is_ordered,
        "text": _is_text(values["text"], MAX_SEGMENT_CHARS),
        "tokens": _is_number(values["tokens"]),
        "fingerprint": _is_text(values["fingerprint"], _FINGERPRINT_CHARS),
    }
    for name, is_valid in checks.items():
        if not is_valid:
            raise ValidationError({f"{path}.{name}": "It must be as an export contains it."})
    return SummaryLeaf(**values)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _is_text(value: object, most_chars: int) -> bool:
    return isinstance(value, str) and len(value) <= most_chars
