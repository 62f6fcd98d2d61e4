"""A fork: a new session that begins as another one was up to a message, with the newest summary that those messages support."""

from uuid import uuid4

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from chatcore import context
from chatcore.models import Attachment, ContextRevision, Message, Session
from chatcore.versions import Superseded

BATCH = 500  # rows an INSERT
SAME = ("model", "system_prompt", "policy", "auto_compact", "tools", "params", "compact_threshold")


def fork(message: Message) -> Session:
    """A new session of the same owner with copies of all up to this message, results of its tools included. Raises Superseded.

    Numbers, times, pins, files and counts are the same; what was superseded stays behind.
    """
    with transaction.atomic():
        source = Session.objects.select_for_update(of=("self",)).select_related("model").get(pk=message.session_id)
        if source.messages.get(pk=message.pk).branch is not None:
            raise Superseded("The message was superseded; bring its version back first.")
        copied = _up_to(source, message)
        made = Session.objects.create(owner_id=source.owner_id, title=source.title, **{name: getattr(source, name) for name in SAME})
        ids = _copy_messages(copied, made)
        _copy_files(source, ids)
        last = copied.aggregate(last=Max("seq"))["last"] or 0
        Session.objects.filter(pk=made.pk).update(message_count=len(ids), last_seq=last, updated_at=timezone.now())
        _show_as_before(source, made, last)
        guard = context.guard()
        if guard:
            guard.forked(source, made, last)
    made.refresh_from_db()
    return made


def _up_to(source: Session, message: Message) -> QuerySet[Message]:
    """What is copied: never half of a call and its results, nor what is still being written."""
    current = source.messages.current().exclude(status=Message.Status.STREAMING)
    later = current.filter(seq__gt=message.seq).exclude(role=Message.Role.TOOL).order_by("seq").values_list("seq", flat=True).first()
    with_results = current.filter(seq__lt=later) if later else current
    inside = message.role == Message.Role.TOOL or message.tool_calls
    return (with_results if inside else current.filter(seq__lte=message.seq)).order_by("seq")


def _copy_messages(copied: QuerySet[Message], made: Session) -> dict[int, int]:
    """The new message's id for each old one's."""
    ids: dict[int, int] = {}
    batch: list[tuple[int, Message]] = []

    def write() -> None:
        rows = Message.objects.bulk_create([row for _, row in batch])
        ids.update((old, row.pk) for (old, _), row in zip(batch, rows, strict=True))
        batch.clear()

    for row in copied.iterator(chunk_size=BATCH):
        old, row.pk = row.pk, None
        row.session, row.turn, row.replaces_id, row.context_version = made, None, None, None
        row._state.adding = True
        batch.append((old, row))
        if len(batch) >= BATCH:
            write()
    write()
    return ids


def _copy_files(source: Session, ids: dict[int, int]) -> None:
    for attachment in Attachment.objects.filter(session=source, message__isnull=False).iterator(chunk_size=20):
        if attachment.message_id in ids:
            copy_id = ids[attachment.message_id]
            session_id = Message.objects.values_list("session_id", flat=True).get(pk=copy_id)
            attachment.pk, attachment.message_id, attachment.session_id = uuid4(), copy_id, session_id
            attachment.save(force_insert=True)


def _show_as_before(source: Session, made: Session, last: int) -> None:
    """Install the newest revision that covers none but the copied messages, with the edits that were in force under it."""
    revision = _supported(source, last)
    if revision is None:
        return
    edits = source.context_edits.filter(from_version__lte=revision.version, message__seq__lte=last)
    in_force = edits.exclude(until_version__lte=revision.version).values_list("message__seq", "kind", "replacement")
    context.install(
        made.pk,
        base_version=0,
        summary=revision.summary,
        boundary_seq=revision.boundary_seq,
        edits=[context.Edit(message_seq=seq, kind=kind, replacement=replacement) for seq, kind, replacement in in_force],
        kept_seqs=[seq for seq in revision.kept_seqs if seq <= last],
        background=revision.background,
        placement=revision.placement,
        source=ContextRevision.Source.EDIT,
    )


def _supported(source: Session, last: int) -> ContextRevision | None:
    """Newest first; one that a rewind or an edit went back behind no longer counts, and 0 shows everything."""
    for revision in source.revisions.filter(stale=False).order_by("-version").iterator():
        covered = max((revision.boundary_seq or 1) - 1, revision.placement.get("summarized_up_to") or 0)
        if covered < last or not revision.boundary_seq:
            return revision if revision.summary or revision.boundary_seq or covered else None
    return None
