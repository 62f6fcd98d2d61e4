"""What the model sees, in an exported session: the summary, its place, what is kept beside it, and messages in other forms."""

from collections.abc import Collection, Mapping
from typing import Any

from chatcore.context import revisions
from chatcore.context.summary_block import PLACES, WORDS
from chatcore.models import ContextEdit, ContextRevision, Session
from chatcore.sessions.truncation import clean_text, cleaned
from chatcore.transfer.reader import NotImportable, column_values, is_number, part


def of(session: Session) -> dict[str, Any]:
    """As JSON values."""
    edits = session.context_edits.filter(until_version=None).order_by("message__seq")
    revision = (
        session.revisions.filter(version=session.context_version).first() or ContextRevision()
    )
    return {
        "summary": session.compacted_summary,
        "boundary_seq": session.compact_boundary_seq,
        "kept_seqs": revision.kept_seqs,
        "background": revision.background,
        "placement": revision.placement,
        "edits": [
            {"message_seq": seq, "kind": kind, "replacement": replacement}
            for seq, kind, replacement in edits.values_list("message__seq", "kind", "replacement")
        ],
    }


def restore(session: Session, shown: Mapping[str, Any], seqs: Collection[int], last: int) -> None:
    """Install what the file says. `seqs` are the numbers of its messages; up to `last` there were others. Raises NotImportable."""
    if not any(shown.values()):
        return
    summary, boundary = shown.get("summary"), shown.get("boundary_seq")
    if not isinstance(summary, str | None):
        raise NotImportable("context.summary", "A text.")
    if boundary is not None and not _is_place(boundary, last):
        raise NotImportable("context.boundary_seq", "There is no such message in the file.")
    revisions.install(
        session.pk,
        base_version=0,
        summary=None if summary is None else clean_text(summary),
        boundary_seq=boundary,
        edits=[
            _edit(edit, f"context.edits[{index}]", seqs)
            for index, edit in enumerate(part(shown, "edits", list))
        ],
        **_said_beside(shown, boundary, seqs, last),
        source=ContextRevision.Source.EDIT,
    )


def _is_place(seq: Any, last: int) -> bool:
    """Between the messages; the one that had this number may have been deleted."""
    return is_number(seq) and 0 < seq <= last


def _said_beside(
    shown: Mapping[str, Any], boundary: int | None, seqs: Collection[int], last: int
) -> dict[str, Any]:
    """Kept messages, background and placement."""
    if not isinstance(background := shown.get("background", ""), str):
        raise NotImportable("context.background", "A text.")
    kept, placement = part(shown, "kept_seqs", list), part(shown, "placement", dict)
    if any(not is_number(seq) or seq not in seqs or seq >= (boundary or 0) for seq in kept):
        raise NotImportable("context.kept_seqs", "Messages of the file, before the boundary.")
    return {
        "kept_seqs": kept,
        "background": clean_text(background),
        "placement": cleaned(_placement(placement, last)),
    }


def _placement(given: Mapping[str, Any], last: int) -> dict[str, Any]:
    places = {
        name: given[name]
        for name in ("after_seq", "summarized_up_to")
        if given.get(name) is not None
    }
    texts = {name: given[name] for name in ("place", *WORDS) if given.get(name) is not None}
    for name, value in texts.items():
        if not isinstance(value, str) or (name == "place" and value not in PLACES):
            raise NotImportable(f"context.placement.{name}", "A text, as an export has it.")
    for name, seq in places.items():
        if not _is_place(seq, last):
            raise NotImportable(
                f"context.placement.{name}", "There is no such message in the file."
            )
    return texts | places


def _edit(edit: Any, path: str, seqs: Collection[int]) -> revisions.Edit:
    seq = edit.get("message_seq") if isinstance(edit, Mapping) else None
    if not is_number(seq) or seq not in seqs:
        raise NotImportable(path, "There is no such message in the file.")
    form = column_values(ContextEdit, edit, ("kind", "replacement"), path)
    if "kind" not in form:
        raise NotImportable(f"{path}.kind", "It says how the message is shown.")
    return revisions.Edit(message_seq=seq, **form)
