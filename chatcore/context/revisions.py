"""Change what the model sees of a session: each change is a new revision; messages stay."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q

from chatcore.base.actors import get_actor_id
from chatcore.context.live_messages import load_current_seqs
from chatcore.models import ContextEdit, ContextRevision, Session
from chatcore.signals import context_rewound

# The columns of a revision that decide what a request sends.
REVISION_FIELDS = ("summary", "boundary_seq", "kept_seqs", "background", "placement")


class StaleContext(Exception):
    """The context is no longer the one that a change was based on; nothing was installed."""


@dataclass(frozen=True, kw_only=True)
class MessageEdit:
    """Another form of a message for the model."""

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
    placement: Mapping[str, object] | None = None,
    source: str,
    run: str = "",
) -> ContextRevision:
    """Install what the model sees from now on, if the context still has version `base_version`.

    `edits` are added to the edits that are in force. `source_seqs` are the messages from which the
    summary was written. `kept_seqs` are sent although they are older than the boundary.
    `background` is reference text that is sent with the summary, and `placement` says where the
    summary is sent and with which words around it (summary_block.py). Raises StaleContext if the
    context has another version, or if a source message was superseded or deleted.
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


def hide_messages(session_id: UUID, seqs: Collection[int]) -> None:
    """Leave messages out of requests from now on; they stay in the chat as they are."""
    with transaction.atomic():
        session = _lock_session(session_id, None)
        fields = _load_revision_fields(session, session.context_version)
        revision = _record_revision(session, fields, source=ContextRevision.Source.EDIT)
        edits = [MessageEdit(message_seq=seq, kind=ContextEdit.Kind.HIDDEN) for seq in seqs]
        _apply_edits(session, revision.version, edits)


def reword_summary(
    session_id: UUID,
    *,
    base_version: int | None = None,
    summary: str | None = None,
    background: str | None = None,
) -> ContextRevision:
    """Replace the text of the summary, of the background, or of both; all else stays.

    Raises StaleContext if the context does not have version `base_version`.
    """
    with transaction.atomic():
        session = _lock_session(session_id, base_version)
        fields = _load_revision_fields(session, session.context_version)
        if background is not None:
            fields["background"] = background
        if summary is None:
            source = _choose_background_source(session)
        else:
            fields["summary"] = summary
            source = ContextRevision.Source.EDIT
        return _record_revision(session, fields, source=source)


def rewind_context(
    session_id: UUID, *, to_version: int, base_version: int | None = None, run: str = ""
) -> ContextRevision:
    """Go back to what the model saw under an earlier version; version 0 is the whole history.

    `run` names the compaction run that goes on from there and installs its own version next.

    A version that covers messages which were edited or deleted since is stale. In its place, the
    newest version before it that is not stale is restored. Raises ContextRevision.DoesNotExist, and
    StaleContext if the context does not have version `base_version`.
    """
    with transaction.atomic():
        session = _lock_session(session_id, base_version)
        if to_version:
            session.revisions.get(version=to_version)
        sound_version = _find_sound_version(session, to_version)
        source = ContextRevision.Source.REWIND
        revision = _restore_version(session, sound_version, source, run=run)
        context_rewound.send(ContextRevision, revision=revision)
        return revision


def reset_context(session_id: UUID, *, base_version: int | None = None) -> ContextRevision:
    """Drop the summary, so that the full history is sent again; the background stays.

    Raises StaleContext if the context does not have version `base_version`.
    """
    with transaction.atomic():
        session = _lock_session(session_id, base_version)
        fields = _load_revision_fields(session, 0)
        current_fields = _load_revision_fields(session, session.context_version)
        fields["background"] = current_fields["background"]
        revision = _record_revision(session, fields, source=ContextRevision.Source.RESET)
        session.context_edits.filter(until_version=None).update(until_version=revision.version)
        return revision


def revert_summaries_covering(session: Session, seqs: Collection[int]) -> int | None:
    """Revert summaries that cover these messages, because their text or their place changes.

    Every revision that covers or edits one of the messages is marked stale. If the current one is
    among them, the newest older revision that is not stale is restored, or the whole history. A
    boundary at one of the messages moves to the next message that stays. Returns the new version of
    the context, or None. Call it in a transaction that has locked the session's row.
    """
    if not seqs:
        return None
    session.refresh_from_db(fields=["compacted_summary", "compact_boundary_seq", "context_version"])
    session.revisions.filter(_build_stale_filter(session, seqs)).update(stale=True)
    current_revision = session.revisions.filter(version=session.context_version)
    if current_revision.filter(stale=True).exists():
        sound_version = _find_sound_version(session, session.context_version)
        return _restore_version(session, sound_version, ContextRevision.Source.EDIT).version
    return _move_boundary_past(session, seqs)


def _build_stale_filter(session: Session, seqs: Collection[int]) -> Q:
    """Return the filter of the revisions that cover or edit one of these messages."""
    oldest_seq = min(seqs)
    stale_filter = Q(boundary_seq__gt=oldest_seq) | Q(placement__summarized_up_to__gte=oldest_seq)
    edits = session.context_edits.filter(message__seq__in=seqs)
    version_ranges = edits.values_list("from_version", "until_version").distinct()
    for from_version, until_version in version_ranges:
        edited_revisions = Q(version__gte=from_version)
        if until_version:
            edited_revisions &= Q(version__lt=until_version)
        stale_filter |= edited_revisions
    return stale_filter


def _choose_background_source(session: Session) -> str:
    """Return the source of a revision that only changes the background.

    After a rewind or a reset, automatic compaction waits. A new background must not end that, so
    the new revision has the same source.
    """
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
    if not seqs:
        return
    # A range, because a list of many thousand numbers exceeds what a database takes as parameters.
    if not load_current_seqs(session.pk, min(seqs), max(seqs)).issuperset(seqs):
        raise StaleContext("Messages that were read for it were superseded or deleted since.")


def _find_sound_version(session: Session, version: int) -> int:
    """Return the newest version up to this one that is not stale; 0, the whole history, if none."""
    sound_revisions = session.revisions.filter(version__lte=version, stale=False)
    newest_version: int | None = sound_revisions.aggregate(newest=Max("version"))["newest"]
    return newest_version or 0


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


def _load_revision_fields(session: Session, version: int) -> dict[str, object]:
    """Return the fields of a version; those of version 0 show the whole history."""
    revision = session.revisions.get(version=version) if version else ContextRevision()
    return {name: getattr(revision, name) for name in REVISION_FIELDS}


def _restore_version(
    session: Session, to_version: int, source: str, *, run: str = ""
) -> ContextRevision:
    revision = _record_revision(
        session,
        _load_revision_fields(session, to_version),
        source=source,
        restores=to_version,
        run=run,
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
    columns = [
        "context_version",
        "compacted_summary",
        "compact_boundary_seq",
        "compact_boundary_timestamp",
    ]
    session.save(update_fields=columns)
    return session.revisions.create(
        version=session.context_version,
        boundary_timestamp=boundary_timestamp,
        actor_id=get_actor_id(),
        **fields,
        **extra,
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
    rows = [(ids[edit.message_seq], edit.kind, edit.replacement) for edit in edits]
    _store_edits(session, version, rows)


def _restore_edits(session: Session, to_version: int, version: int) -> None:
    earlier_edits = session.context_edits.filter(from_version__lte=to_version).exclude(
        until_version__lte=to_version
    )
    rows = list(earlier_edits.values_list("message_id", "kind", "replacement"))
    session.context_edits.filter(until_version=None).update(until_version=version)
    _store_edits(session, version, rows)


def _store_edits(session: Session, version: int, rows: Iterable[tuple[int, str, str]]) -> None:
    ContextEdit.objects.bulk_create(
        ContextEdit(
            session=session,
            message_id=message_id,
            kind=kind,
            replacement=replacement,
            from_version=version,
        )
        for message_id, kind, replacement in rows
    )
