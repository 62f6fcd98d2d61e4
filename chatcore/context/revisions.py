"""Changing what the model sees without changing a message: install, reword, rewind, reset, uncover; each one immutable row more."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q

from chatcore.models import ContextEdit, ContextRevision, Session

SHOWN = (
    "summary",
    "boundary_seq",
    "kept_seqs",
    "background",
    "placement",
)  # of a revision: all that a request is made of


class StaleContext(Exception):
    """The context changed since the version this change was built on; nothing was installed."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A message to be shown to the model in another form."""

    message_seq: int
    kind: str
    replacement: str = ""


def install(
    session_id: UUID,
    *,
    base_version: int,
    summary: str | None,
    boundary_seq: int | None,
    edits: Sequence[Edit] = (),
    read: Collection[int] = (),
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
    shown = {
        "summary": summary,
        "boundary_seq": boundary_seq,
        "kept_seqs": sorted(set(kept_seqs)),
        "background": background,
        "placement": dict(placement or {}),
    }
    with transaction.atomic():
        session = _locked(session_id, base_version)
        _refuse_changed(session, read)
        revision = _record(session, shown, source=source, run=run)
        _apply_edits(session, revision.version, edits)
        return revision


def reword(
    session_id: UUID,
    *,
    base_version: int | None = None,
    summary: str | None = None,
    background: str | None = None,
) -> ContextRevision:
    """Put other words in place of the summary, or of what goes with it; where they stand and all else stays. Raises StaleContext."""
    words = {
        name: text
        for name, text in (("summary", summary), ("background", background))
        if text is not None
    }
    with transaction.atomic():
        session = _locked(session_id, base_version)
        source = ContextRevision.Source.EDIT if summary is not None else _kept_source(session)
        return _record(session, _shown(session, session.context_version) | words, source=source)


def rewind(session_id: UUID, *, to_version: int) -> ContextRevision:
    """Go back to what the model saw under an earlier version; 0 is the whole history. Raises ContextRevision.DoesNotExist.

    A version that covers messages that were edited or deleted since is not brought back, but the newest one before it that is sound.
    """
    with transaction.atomic():
        session = _locked(session_id, None)
        if to_version:
            session.revisions.get(version=to_version)
        return _restore(session, _sound(session, to_version), ContextRevision.Source.REWIND)


def reset(session_id: UUID, *, base_version: int | None = None) -> ContextRevision:
    """Forget the summary: the full history is sent again, and what goes with a summary (state, memory) stays.

    Raises StaleContext if the context is not `base_version`.
    """
    with transaction.atomic():
        session = _locked(session_id, base_version)
        kept = {"background": _shown(session, session.context_version)["background"]}
        revision = _record(session, _shown(session, 0) | kept, source=ContextRevision.Source.RESET)
        session.context_edits.filter(until_version=None).update(until_version=revision.version)
        return revision


def uncover(session: Session, seqs: Collection[int]) -> int | None:
    """The text of these messages changes, or whether they are sent: what was said of them in a summary holds no longer.

    Every revision that covers or edited one of them is marked stale. If the current one is, the newest older one that is not takes its
    place, or the whole history does. A boundary at one of them moves to the next message that is left. The new version, if there is one.
    To be called in a transaction that holds the session's row.
    """
    if not seqs:
        return None
    session.refresh_from_db(fields=["compacted_summary", "compact_boundary_seq", "context_version"])
    touched = Q(boundary_seq__gt=min(seqs)) | Q(placement__summarized_up_to__gte=min(seqs))
    ranges = (
        session.context_edits.filter(message__seq__in=seqs)
        .values_list("from_version", "until_version")
        .distinct()
    )
    for since, until in ranges:
        touched |= Q(version__gte=since, version__lt=until) if until else Q(version__gte=since)
    session.revisions.filter(touched).update(stale=True)
    if session.revisions.filter(version=session.context_version, stale=True).exists():
        return _restore(
            session, _sound(session, session.context_version), ContextRevision.Source.EDIT
        ).version
    return _step_off(session, seqs)


def _kept_source(session: Session) -> str:
    """Other words beside the summary do not end what going back began."""
    back = (ContextRevision.Source.REWIND, ContextRevision.Source.RESET)
    source = (
        session.revisions.filter(version=session.context_version)
        .values_list("source", flat=True)
        .first()
    )
    return source if source in back else ContextRevision.Source.EDIT


def _locked(session_id: UUID, base_version: int | None) -> Session:
    session = Session.objects.select_for_update().get(pk=session_id)
    if base_version is not None and session.context_version != base_version:
        raise StaleContext(
            f"The context is at version {session.context_version}, not {base_version}."
        )
    return session


def _refuse_changed(session: Session, seqs: Collection[int]) -> None:
    if seqs:
        current = session.messages.current().filter(seq__range=(min(seqs), max(seqs)))
        if not set(seqs) <= set(current.values_list("seq", flat=True)):
            raise StaleContext("Messages that were read for it were superseded or deleted since.")


def _sound(session: Session, version: int) -> int:
    """The newest version up to this one that covers nothing that changed; 0 for none."""
    return (
        session.revisions.filter(version__lte=version, stale=False).aggregate(
            newest=Max("version")
        )["newest"]
        or 0
    )


def _step_off(session: Session, seqs: Collection[int]) -> int | None:
    boundary = session.compact_boundary_seq
    if boundary not in seqs:
        return None
    left = session.messages.current().filter(seq__gt=boundary).exclude(seq__in=seqs).order_by("seq")
    following = left.values_list("seq", flat=True).first()
    if following is None:
        return None
    shown = _shown(session, session.context_version) | {"boundary_seq": following}
    return _record(session, shown, source=ContextRevision.Source.EDIT).version


def _shown(session: Session, version: int) -> dict[str, Any]:
    """What a version shows; 0: everything, and nothing besides."""
    revision = session.revisions.get(version=version) if version else ContextRevision()
    return {name: getattr(revision, name) for name in SHOWN}


def _restore(session: Session, to_version: int, source: str) -> ContextRevision:
    revision = _record(session, _shown(session, to_version), source=source, restores=to_version)
    _restore_edits(session, to_version, revision.version)
    return revision


def _record(session: Session, shown: dict[str, Any], **extra: Any) -> ContextRevision:
    seq = shown["boundary_seq"]
    boundary = (
        session.messages.filter(seq=seq).values_list("created_at", flat=True).first()
        if seq
        else None
    )
    session.context_version += 1
    session.compacted_summary = shown["summary"]
    session.compact_boundary_seq = seq
    session.compact_boundary_timestamp = boundary
    session.save(
        update_fields=[
            "context_version",
            "compacted_summary",
            "compact_boundary_seq",
            "compact_boundary_timestamp",
        ]
    )
    return session.revisions.create(
        version=session.context_version, boundary_timestamp=boundary, **shown, **extra
    )


def _apply_edits(session: Session, version: int, edits: Sequence[Edit]) -> None:
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
    then = session.context_edits.filter(from_version__lte=to_version).exclude(
        until_version__lte=to_version
    )
    again = [
        ContextEdit(
            session=session,
            message_id=e.message_id,
            kind=e.kind,
            replacement=e.replacement,
            from_version=version,
        )
        for e in then
    ]
    session.context_edits.filter(until_version=None).update(until_version=version)
    ContextEdit.objects.bulk_create(again)
