"""A fork: a new session that begins as another one was up to a message, with the newest summary that those messages support."""

from collections.abc import Collection
from typing import Any
from uuid import uuid4

from django.db import connection, transaction
from django.db.models import Max, OuterRef, QuerySet, Subquery, Value
from django.utils import timezone

from chatcore.context import builder, revisions
from chatcore.models import Attachment, ContextRevision, Message, Session
from chatcore.turns.versions import Superseded

OWN = (
    "id",
    "turn_id",
    "replaces_id",
    "branch",
    "branch_after",
    "context_version",
)  # what a copy of a message has not
SAME = ("model", "system_prompt", "policy", "auto_compact", "tools", "params", "compact_threshold")


def fork(message: Message) -> Session:
    """A new session of the same owner with copies of all up to this message, results of its tools included. Raises Superseded.

    Numbers, times, pins, files and counts are the same; what was superseded stays behind.
    """
    with transaction.atomic():
        source = (
            Session.objects.select_for_update(of=("self",))
            .select_related("model")
            .get(pk=message.session_id)
        )
        if source.messages.get(pk=message.pk).branch is not None:
            raise Superseded("The message was superseded; bring its version back first.")
        copied = _up_to(source, message)
        made = Session.objects.create(
            owner_id=source.owner_id,
            title=source.title,
            **{name: getattr(source, name) for name in SAME},
        )
        _copy(copied, without=OWN, session_id=made.pk)
        last = made.messages.aggregate(last=Max("seq"))["last"] or 0
        _copy_files(source, made, last)
        Session.objects.filter(pk=made.pk).update(
            message_count=made.messages.count(), last_seq=last, updated_at=timezone.now()
        )
        _show_as_before(source, made, last)
        guard = builder.guard()
        if guard:
            guard.forked(source, made, last)
    made.refresh_from_db()
    return made


def _up_to(source: Session, message: Message) -> QuerySet[Message]:
    """What is copied: never half of a call and its results, nor what is still being written."""
    current = source.messages.current().exclude(status=Message.Status.STREAMING)
    later = (
        current.filter(seq__gt=message.seq)
        .exclude(role=Message.Role.TOOL)
        .order_by("seq")
        .values_list("seq", flat=True)
        .first()
    )
    with_results = current.filter(seq__lt=later) if later else current
    inside = message.role == Message.Role.TOOL or message.tool_calls
    return (with_results if inside else current.filter(seq__lte=message.seq)).order_by("seq")


def _copy_files(source: Session, made: Session, last: int) -> None:
    copies = made.messages.filter(seq=OuterRef("message__seq")).values("pk")
    sent = Attachment.objects.filter(
        session=source, message__branch=None, message__seq__lte=last
    ).order_by()
    for pk, copy_id in (
        sent.annotate(copy=Subquery(copies)).exclude(copy=None).values_list("pk", "copy")
    ):
        _copy(
            Attachment.objects.filter(pk=pk).order_by(),
            id=uuid4(),
            session_id=made.pk,
            message_id=copy_id,
        )


def _copy(rows: QuerySet[Any], *, without: Collection[str] = (), **changed: Any) -> None:
    """Insert the rows once more, inside of the database: a long history never passes through here.

    `changed` are the values of columns that differ, `without` names those that are left at their default.
    """
    fields = [field for field in rows.model._meta.concrete_fields if field.attname not in without]
    values = {
        f"its_{field.attname}": Value(changed[field.attname], field)
        for field in fields
        if field.attname in changed
    }
    names = [
        f"its_{field.attname}" if field.attname in changed else field.attname for field in fields
    ]
    select, params = rows.annotate(**values).values_list(*names).query.sql_with_params()
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {quote(rows.model._meta.db_table)} ({columns}) {select}", params
        )


def _show_as_before(source: Session, made: Session, last: int) -> None:
    """Install the newest revision that covers none but the copied messages, with the edits that were in force under it."""
    revision = _supported(source, last)
    if revision is None:
        return
    copied = {"message__seq__lte": last, "message__branch": None}
    edits = source.context_edits.filter(from_version__lte=revision.version, **copied)
    in_force = edits.exclude(until_version__lte=revision.version).values_list(
        "message__seq", "kind", "replacement"
    )
    revisions.install(
        made.pk,
        base_version=0,
        summary=revision.summary,
        boundary_seq=revision.boundary_seq,
        edits=[
            revisions.Edit(message_seq=seq, kind=kind, replacement=replacement)
            for seq, kind, replacement in in_force
        ],
        kept_seqs=[seq for seq in revision.kept_seqs if seq <= last],
        background=revision.background,
        placement=_within(revision.placement, last),
        source=ContextRevision.Source.EDIT,
    )


def _within(placement: dict[str, Any], last: int) -> dict[str, Any]:
    """The summary stands behind the last message, where it stood behind one that was not copied."""
    after = placement.get("after_seq")
    return placement | {"after_seq": last} if after and after > last else placement


def _supported(source: Session, last: int) -> ContextRevision | None:
    """Newest first; one that a rewind or an edit went back behind no longer counts, and 0 shows everything."""
    for revision in source.revisions.filter(stale=False).order_by("-version").iterator():
        covered = max(
            (revision.boundary_seq or 1) - 1, revision.placement.get("summarized_up_to") or 0
        )
        if covered < last or not revision.boundary_seq:
            return revision if revision.summary or revision.boundary_seq or covered else None
    return None
