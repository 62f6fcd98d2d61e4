"""A fork: a new session that begins as another one was up to a message, with the newest summary that those messages support."""

from collections.abc import Collection
from typing import Any
from uuid import uuid4

from django.db import connection, transaction
from django.db.models import Max, OuterRef, QuerySet, Subquery, Value
from django.utils import timezone

from chatcore.context import revisions
from chatcore.context.compactor import get_compactor
from chatcore.models import Attachment, ContextRevision, Message, Session
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.changes import count_current_messages
from chatcore.turns.versions import MessageSuperseded

UNCOPIED_COLUMNS = (
    "id",
    "turn_id",
    "replaces_id",
    "branch",
    "branch_after",
    "context_version",
)  # what a copy of a message has not
SESSION_COLUMNS = (
    "model",
    "system_prompt",
    "policy",
    "auto_compact",
    "tools",
    "params",
    "compact_threshold",
)


def fork_session(message: Message) -> Session:
    """A new session of the same owner with copies of all up to this message, results of its tools included. Raises Superseded.

    Numbers, times, pins, files and counts are the same; what was superseded stays behind.
    """
    with transaction.atomic():
        source = Session.objects.lock(message.session_id)
        if source.messages.get(pk=message.pk).branch is not None:
            raise MessageSuperseded("The message was superseded; bring its version back first.")
        messages = _select_messages_to_copy(source, message)
        new_session = Session.objects.create(
            owner_id=source.owner_id,
            title=source.title,
            **{name: getattr(source, name) for name in SESSION_COLUMNS},
        )
        _copy_rows(messages, excluded_columns=UNCOPIED_COLUMNS, session_id=new_session.pk)
        last_seq = new_session.messages.aggregate(last=Max("seq"))["last"] or 0
        _copy_files(source, new_session, last_seq)
        Session.objects.filter(pk=new_session.pk).update(
            message_count=count_current_messages(new_session.pk),
            last_seq=last_seq,
            updated_at=timezone.now(),
        )
        _install_supported_revision(source, new_session, last_seq)
        get_compactor().on_session_forked(source, new_session, last_seq)
    # Only now: under the lock of the source, two forks could wait for each other's source.
    archive_surplus_sessions(new_session)
    new_session.refresh_from_db()
    return new_session


def _select_messages_to_copy(source: Session, message: Message) -> QuerySet[Message]:
    """What is copied: never half of a call and its results, nor what is still being written."""
    messages = source.messages.exclude_superseded().exclude(status=Message.Status.STREAMING)
    next_seq = (
        messages.filter(seq__gt=message.seq)
        .exclude(role=Message.Role.TOOL)
        .order_by("seq")
        .values_list("seq", flat=True)
        .first()
    )
    messages_with_results = messages.filter(seq__lt=next_seq) if next_seq else messages
    is_tool_exchange = message.role == Message.Role.TOOL or message.tool_calls
    return (
        messages_with_results if is_tool_exchange else messages.filter(seq__lte=message.seq)
    ).order_by("seq")


def _copy_files(source: Session, new_session: Session, last_seq: int) -> None:
    message_copies = new_session.messages.filter(seq=OuterRef("message__seq")).values("pk")
    attachments = Attachment.objects.filter(
        session=source, message__branch=None, message__seq__lte=last_seq
    ).order_by()
    for pk, copy_id in (
        attachments.annotate(copy=Subquery(message_copies))
        .exclude(copy=None)
        .values_list("pk", "copy")
    ):
        _copy_rows(
            Attachment.objects.filter(pk=pk).order_by(),
            id=uuid4(),
            session_id=new_session.pk,
            message_id=copy_id,
        )


def _copy_rows(
    rows: QuerySet[Any], *, excluded_columns: Collection[str] = (), **overrides: Any
) -> None:
    """Insert the rows once more, inside of the database: a long history never passes through here.

    `changed` are the values of columns that differ, `without` names those that are left at their default.
    """
    fields = [
        field for field in rows.model._meta.concrete_fields if field.attname not in excluded_columns
    ]
    values = {
        f"its_{field.attname}": Value(overrides[field.attname], field)
        for field in fields
        if field.attname in overrides
    }
    names = [
        f"its_{field.attname}" if field.attname in overrides else field.attname for field in fields
    ]
    select_sql, params = rows.annotate(**values).values_list(*names).query.sql_with_params()
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {quote(rows.model._meta.db_table)} ({columns}) {select_sql}", params
        )


def _install_supported_revision(source: Session, new_session: Session, last_seq: int) -> None:
    """Install the newest revision that covers none but the copied messages, with the edits that were in force under it."""
    revision = _find_supported_revision(source, last_seq)
    if revision is None:
        return
    message_filter = {"message__seq__lte": last_seq, "message__branch": None}
    edits = source.context_edits.filter(from_version__lte=revision.version, **message_filter)
    edit_rows = edits.exclude(until_version__lte=revision.version).values_list(
        "message__seq", "kind", "replacement"
    )
    revisions.install_revision(
        new_session.pk,
        base_version=0,
        summary=revision.summary,
        boundary_seq=revision.boundary_seq,
        edits=[
            revisions.MessageEdit(message_seq=seq, kind=kind, replacement=replacement)
            for seq, kind, replacement in edit_rows
        ],
        kept_seqs=[seq for seq in revision.kept_seqs if seq <= last_seq],
        background=revision.background,
        placement=_clamp_placement(revision.placement, last_seq),
        source=ContextRevision.Source.EDIT,
    )


def _clamp_placement(placement: dict[str, Any], last_seq: int) -> dict[str, Any]:
    """The summary stands behind the last message, where it stood behind one that was not copied."""
    after_seq = placement.get("after_seq")
    return placement | {"after_seq": last_seq} if after_seq and after_seq > last_seq else placement


def _find_supported_revision(source: Session, last_seq: int) -> ContextRevision | None:
    """Newest first; one that a rewind or an edit went back behind no longer counts, and 0 shows everything."""
    for revision in source.revisions.filter(stale=False).order_by("-version").iterator():
        covered_seq = max(
            (revision.boundary_seq or 1) - 1, revision.placement.get("summarized_up_to") or 0
        )
        if covered_seq < last_seq or not revision.boundary_seq:
            return revision if revision.summary or revision.boundary_seq or covered_seq else None
    return None
