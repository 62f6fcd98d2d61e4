"""Fork a session: copy it up to a message, with the newest summary that covers only the copies."""

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

# These columns refer to other rows of the source, so the copy of a message has none of them.
UNCOPIED_COLUMNS = ("id", "turn_id", "replaces_id", "branch", "branch_after", "context_version")
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
    """Create a session of the same owner with copies of the messages up to this one.

    The results of its tool calls are copied too. Numbers, times, pins, files and token counts stay
    the same; superseded messages are not copied. Raises MessageSuperseded.
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
    """Return the messages to copy: complete ones, and a tool call only with all its results."""
    messages = source.messages.exclude_superseded().exclude(status=Message.Status.STREAMING)
    next_seq = (
        messages.filter(seq__gt=message.seq)
        .exclude(role=Message.Role.TOOL)
        .order_by("seq")
        .values_list("seq", flat=True)
        .first()
    )
    is_tool_exchange = message.role == Message.Role.TOOL or message.tool_calls
    if not is_tool_exchange:
        messages = messages.filter(seq__lte=message.seq)
    elif next_seq:
        messages = messages.filter(seq__lt=next_seq)
    return messages.order_by("seq")


def _copy_files(source: Session, new_session: Session, last_seq: int) -> None:
    message_copies = new_session.messages.filter(seq=OuterRef("message__seq")).values("pk")
    attachments = Attachment.objects.filter(
        session=source, message__branch=None, message__seq__lte=last_seq
    ).order_by()
    copied_attachments = attachments.annotate(copy=Subquery(message_copies)).exclude(copy=None)
    for pk, copy_id in copied_attachments.values_list("pk", "copy"):
        _copy_rows(
            Attachment.objects.filter(pk=pk).order_by(),
            id=uuid4(),
            session_id=new_session.pk,
            message_id=copy_id,
        )


def _copy_rows(
    rows: QuerySet[Any], *, excluded_columns: Collection[str] = (), **overrides: Any
) -> None:
    """Insert copies of the rows, with other values in the columns that `overrides` names.

    Columns in `excluded_columns` get the default of the database. One statement copies inside the
    database, so a long history is never loaded into this process.
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
    """Install the newest revision that covers only copied messages, with its edits."""
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
    """Place the summary behind the last copy if its place is behind a message without a copy."""
    after_seq = placement.get("after_seq")
    if after_seq and after_seq > last_seq:
        return placement | {"after_seq": last_seq}
    return placement


def _find_supported_revision(source: Session, last_seq: int) -> ContextRevision | None:
    """Return the newest revision that is not stale and covers only messages up to this number.

    Return None if the fork is to begin with its whole history.
    """
    for revision in source.revisions.filter(stale=False).order_by("-version").iterator():
        last_dropped_seq = (revision.boundary_seq or 1) - 1
        covered_seq = max(last_dropped_seq, revision.placement.get("summarized_up_to") or 0)
        if covered_seq < last_seq or not revision.boundary_seq:
            shows_everything = not (revision.summary or revision.boundary_seq or covered_seq)
            return None if shows_everything else revision
    return None
