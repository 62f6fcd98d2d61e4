"""Changing what the model sees without changing a message: install, reword, rewind, reset, uncover; each one immutable row more."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q

from chatcore.models import ContextEdit, ContextRevision, Session

REVISION_FIELDS = (
    "summary",
    "boundary_seq",
    "kept_seqs",
    "background",
    "placement",
)  # of a revision: all that a request is made of


class StaleContext(Exception):
    """The context changed since the version this change was built on; nothing was installed."""


@dataclass(frozen=True, kw_only=True)
class MessageEdit:
    """A message to be shown to the model in another form."""

    message_seq: int
    kind: str
    replacement: str = ""


def install_revision(
    session_id: UUID,
    *,
    base_version: int,
    summary: str | None,
    boundary_seq: int | None,
    edits: Sequence[MessageEdit] = (),
    source_seqs: Collection[int] = (),
    kept_seqs: Collection[int] = (),
    background: str = "",
    placement: Mapping[str, Any] | None = None,
    source: str,
    run: str = "",
) -> ContextRevision:
    """Install what the model sees from now on, if the context still is `base_version`. Raises StaleContext if it is not.

    Messages are not touched. Edits in force before the boundary stay in force; `edits` are added to them. `read` are the messages
    that the summary was made of: one that was superseded or deleted since makes it stale too. `kept_seqs` are sent although they are older
    than the boundary; `background` is reference text that goes with the summary; `placement` says where and between which words
    (`summary_block.py`).
    """
    fields = {
        "summary": summary,
        "boundary_seq": boundary_seq,
        "kept_seqs": sorted(set(kept_seqs)),
        "background": background,
        "placement": dict(placement or {}),
    }
    with transaction.atomic():
        session = _lock_session(session_id, base_version)
        _refuse_changed_messages(session, source_seqs)
        revision = _record_revision(session, fields, source=source, run=run)
        _apply_edits(session, revision.version, edits)
        return revision


def reword_summary(
    session_id: UUID,
    *,
    base_version: int | None = None,
    summary: str | None = None,
    background: str | None = None,
) -> ContextRevision:
    """Put other words in place of the summary, or of what goes with it; where they stand and all else stays. Raises StaleContext."""
    changes = {
        name: text
        for name, text in (("summary", summary), ("background", background))
        if text is not None
    }
    with transaction.atomic():
        session = _lock_session(session_id, base_version)
        source = (
            ContextRevision.Source.EDIT if summary is not None else _choose_reword_source(session)
        )
        return _record_revision(
            session,
            _load_revision_fields(session, session.context_version) | changes,
            source=source,
        )


def rewind_context(session_id: UUID, *, to_version: int) -> ContextRevision:
    """Go back to what the model saw under an earlier version; 0 is the whole history. Raises ContextRevision.DoesNotExist.

    A version that covers messages that were edited or deleted since is not brought back, but the newest one before it that is sound.
    """
    with transaction.atomic():
        session = _lock_session(session_id, None)
        if to_version:
            session.revisions.get(version=to_version)
        return _restore_version(
            session, _find_sound_version(session, to_version), ContextRevision.Source.REWIND
        )


def reset_context(session_id: UUID, *, base_version: int | None = None) -> ContextRevision:
    """Forget the summary: the full history is sent again, and what goes with a summary (state, memory) stays.

    Raises StaleContext if the context is not `base_version`.
    """
    with transaction.atomic():
        session = _lock_session(session_id, base_version)
        background_field = {
            "background": _load_revision_fields(session, session.context_version)["background"]
        }
        revision = _record_revision(
            session,
            _load_revision_fields(session, 0) | background_field,
            source=ContextRevision.Source.RESET,
        )
        session.context_edits.filter(until_version=None).update(until_version=revision.version)
        return revision


def revert_summaries_covering(session: Session, seqs: Collection[int]) -> int | None:
    """The text of these messages changes, or whether they are sent: what was said of them in a summary holds no longer.

    Every revision that covers or edited one of them is marked stale. If the current one is, the newest older one that is not takes its
    place, or the whole history does. A boundary at one of them moves to the next message that is left. The new version, if there is one.
    To be called in a transaction that holds the session's row.
    """
    if not seqs:
        return None
    session.refresh_from_db(fields=["compacted_summary", "compact_boundary_seq", "context_version"])
    stale_filter = Q(boundary_seq__gt=min(seqs)) | Q(placement__summarized_up_to__gte=min(seqs))
    version_ranges = (
        session.context_edits.filter(message__seq__in=seqs)
        .values_list("from_version", "until_version")
        .distinct()
    )
    for from_version, until_version in version_ranges:
        stale_filter |= (
            Q(version__gte=from_version, version__lt=until_version)
            if until_version
            else Q(version__gte=from_version)
        )
    session.revisions.filter(stale_filter).update(stale=True)
    if session.revisions.filter(version=session.context_version, stale=True).exists():
        return _restore_version(
            session,
            _find_sound_version(session, session.context_version),
            ContextRevision.Source.EDIT,
        ).version
    return _move_boundary_past(session, seqs)


def _choose_reword_source(session: Session) -> str:
    """Other words beside the summary do not end what going back began."""
    rollback_sources = (ContextRevision.Source.REWIND, ContextRevision.Source.RESET)
    source = (
        session.revisions.filter(version=session.context_version)
        .values_list("source", flat=True)
        .first()
    )
    return source if source in rollback_sources else ContextRevision.Source.EDIT


def _lock_session(session_id: UUID, base_version: int | None) -> Session:
    session = Session.objects.lock(session_id)
    if base_version is not None and session.context_version != base_version:
        raise StaleContext(
            f"The context is at version {session.context_version}, not {base_version}."
        )
    return session


def _refuse_changed_messages(session: Session, seqs: Collection[int]) -> None:
    if seqs:
        current_messages = session.messages.exclude_superseded().filter(
            seq__range=(min(seqs), max(seqs))
        )
        if not set(seqs) <= set(current_messages.values_list("seq", flat=True)):
            raise StaleContext("Messages that were read for it were superseded or deleted since.")


def _find_sound_version(session: Session, version: int) -> int:
    """The newest version up to this one that covers nothing that changed; 0 for none."""
    return (
        session.revisions.filter(version__lte=version, stale=False).aggregate(
            newest=Max("version")
        )["newest"]
        or 0
    )


def _move_boundary_past(session: Session, seqs: Collection[int]) -> int | None:
    boundary = session.compact_boundary_seq
    if boundary not in seqs:
        return None
    later_messages = (
        session.messages.exclude_superseded()
        .filter(seq__gt=boundary)
        .exclude(seq__in=seqs)
        .order_by("seq")
    )
    next_seq = later_messages.values_list("seq", flat=True).first()
    if next_seq is None:
        return None
    fields = _load_revision_fields(session, session.context_version) | {"boundary_seq": next_seq}
    return _record_revision(session, fields, source=ContextRevision.Source.EDIT).version


def _load_revision_fields(session: Session, version: int) -> dict[str, Any]:
    """What a version shows; 0: everything, and nothing besides."""
    revision = session.revisions.get(version=version) if version else ContextRevision()
    return {name: getattr(revision, name) for name in REVISION_FIELDS}


def _restore_version(session: Session, to_version: int, source: str) -> ContextRevision:
    revision = _record_revision(
        session, _load_revision_fields(session, to_version), source=source, restores=to_version
    )
    _restore_edits(session, to_version, revision.version)
    return revision


def _record_revision(session: Session, fields: dict[str, Any], **extra: Any) -> ContextRevision:
    boundary_seq = fields["boundary_seq"]
    boundary_timestamp = (
        session.messages.filter(seq=boundary_seq).values_list("created_at", flat=True).first()
        if boundary_seq
        else None
    )
    session.context_version += 1
    session.compacted_summary = fields["summary"]
    session.compact_boundary_seq = boundary_seq
    session.compact_boundary_timestamp = boundary_timestamp
    session.save(
        update_fields=[
            "context_version",
            "compacted_summary",
            "compact_boundary_seq",
            "compact_boundary_timestamp",
        ]
    )
    return session.revisions.create(
        version=session.context_version, boundary_timestamp=boundary_timestamp, **fields, **extra
    )


def _apply_edits(session: Session, version: int, edits: Sequence[MessageEdit]) -> None:
    ids = dict(
        session.messages.filter(seq__in=[edit.message_seq for edit in edits]).values_list(
            "seq", "id"
        )
    )
    session.context_edits.filter(until_version=None, message_id__in=ids.values()).update(
        until_version=version
    )
    ContextEdit.objects.bulk_create(
        ContextEdit(
            session=session,
            message_id=ids[edit.message_seq],
            kind=edit.kind,
            replacement=edit.replacement,
            from_version=version,
        )
        for edit in edits
    )


def _restore_edits(session: Session, to_version: int, version: int) -> None:
    earlier_edits = session.context_edits.filter(from_version__lte=to_version).exclude(
        until_version__lte=to_version
    )
    new_edits = [
        ContextEdit(
            session=session,
            message_id=edit.message_id,
            kind=edit.kind,
            replacement=edit.replacement,
            from_version=version,
        )
        for edit in earlier_edits
    ]
    session.context_edits.filter(until_version=None).update(until_version=version)
    ContextEdit.objects.bulk_create(new_edits)
