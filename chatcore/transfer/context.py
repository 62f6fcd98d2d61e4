"""Export and import what the model sees of a session: the summary, its place, and edits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatcore.base.truncation import clean_json, clean_text
from chatcore.context import revisions
from chatcore.context.compactor import get_compactor
from chatcore.context.summary_block import PLACES, TEXT_KEYS
from chatcore.models import ContextEdit, ContextRevision, Message, Session
from chatcore.transfer.reader import InvalidImport, is_number, read_column_values, read_section


def export_context(session: Session) -> dict[str, object]:
    """Return the session's summary, boundary and message edits as JSON values."""
    edits = session.context_edits.filter(until_version=None).order_by("message__seq")
    revision = session.revisions.filter(version=session.context_version).first()
    revision = revision or ContextRevision()
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


@dataclass(frozen=True, kw_only=True)
class ImportedContext:
    """What an export says of the context: the edits, and the arguments of `install_revision`."""

    edits: list[revisions.MessageEdit]
    revision_fields: dict[str, Any]


def read_context(
    context_data: Mapping[str, Any], rows: Sequence[Message], last_seq: int
) -> ImportedContext | None:
    """Return an exported context, or None if the model sees the whole history.

    `rows` are the imported messages, and `last_seq` the highest number that was ever given;
    messages in between may have been deleted. Words that stand outside the summary's envelope or
    in the place of a message are left out unless a policy has them: the owner of the session would
    not see what else a stranger wrote there. Raises InvalidImport.
    """
    if not any(context_data.values()):
        return None
    summary = context_data.get("summary")
    boundary = context_data.get("boundary_seq")
    if not isinstance(summary, str | None):
        raise InvalidImport("context.summary", "It must be a text, or null.")
    if boundary is not None and not _is_position(boundary, last_seq):
        raise InvalidImport("context.boundary_seq", "There is no such message in the file.")
    texts_by_seq = {row.seq: row.content for row in rows}
    seqs = texts_by_seq.keys()
    edits = [
        _parse_edit(edit, f"context.edits[{index}]", seqs)
        for index, edit in enumerate(read_section(context_data, "edits", list))
    ]
    return ImportedContext(
        edits=[
            edit
            for edit in edits
            if _is_known_text(edit.replacement, original=texts_by_seq[edit.message_seq])
        ],
        revision_fields={
            "summary": None if summary is None else clean_text(summary),
            "boundary_seq": boundary,
            **_parse_summary_parts(context_data, boundary, seqs, last_seq),
        },
    )


def _is_position(seq: object, last_seq: int) -> bool:
    """Return True for the number of a message, which may have been deleted since."""
    return is_number(seq) and 0 < seq <= last_seq


def _parse_summary_parts(
    context_data: Mapping[str, object], boundary: int | None, seqs: Collection[int], last_seq: int
) -> dict[str, object]:
    """Return kept messages, background and placement. Raises InvalidImport."""
    background = context_data.get("background", "")
    if not isinstance(background, str):
        raise InvalidImport("context.background", "It must be a text.")
    kept_seqs = read_section(context_data, "kept_seqs", list)
    placement = read_section(context_data, "placement", dict)
    for seq in kept_seqs:
        if not is_number(seq) or seq not in seqs or seq >= (boundary or 0):
            raise InvalidImport(
                "context.kept_seqs", "It must name messages of the file before the boundary."
            )
    return {
        "kept_seqs": kept_seqs,
        "background": clean_text(background),
        "placement": clean_json(_parse_placement(placement, last_seq)),
    }


def _parse_placement(data: Mapping[str, Any], last_seq: int) -> dict[str, object]:
    names = ("after_seq", "summarized_up_to", "left_out_count")
    positions = {name: data[name] for name in names if data.get(name) is not None}
    texts = {name: data[name] for name in ("place", *TEXT_KEYS) if data.get(name) is not None}
    for name, value in texts.items():
        if not isinstance(value, str) or (name == "place" and value not in PLACES):
            raise InvalidImport(
                f"context.placement.{name}", "It must be a text as an export contains it."
            )
    for name, seq in positions.items():
        if not _is_position(seq, last_seq):
            raise InvalidImport(
                f"context.placement.{name}", "There is no such message in the file."
            )
    untold_seqs = data.get("untold_seqs") or []
    if not isinstance(untold_seqs, list) or not all(
        _is_position(seq, last_seq) for seq in untold_seqs
    ):
        raise InvalidImport(
            "context.placement.untold_seqs", "There is no such message in the file."
        )
    known_texts = {
        name: value for name, value in texts.items() if name == "place" or _is_known_text(value)
    }
    # The next summary tells these, so without them they would be in none.
    return known_texts | positions | ({"untold_seqs": untold_seqs} if untold_seqs else {})


def _is_known_text(text: str, *, original: str = "") -> bool:
    """Return False for words that no policy puts there, because nobody would see them."""
    return text in ("", original) or any(
        policy.may_have_written(text, original=original)
        for policy in get_compactor().list_policies().values()
    )


def _parse_edit(edit: Any, path: str, seqs: Collection[int]) -> revisions.MessageEdit:
    seq = edit.get("message_seq") if isinstance(edit, Mapping) else None
    if not is_number(seq) or seq not in seqs:
        raise InvalidImport(path, "There is no such message in the file.")
    values = read_column_values(ContextEdit, edit, ("kind", "replacement"), path)
    if "kind" not in values:
        raise InvalidImport(
            f"{path}.kind", "It is missing; it says how the message is shown to the model."
        )
    return revisions.MessageEdit(message_seq=seq, **values)
