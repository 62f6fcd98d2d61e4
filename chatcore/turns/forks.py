"""Fork a session: copy it up to a message, with the newest summary that covers only the copies."""

import contextlib
from collections.abc import Callable, Collection
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import Max, OuterRef, QuerySet, Subquery, Value
from django.utils import timezone
from django.utils.translation import gettext as _

from chatcore.base.databases.short_transactions import weigh_row
from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.context import revisions
from chatcore.models import Attachment, ContextRevision, Message, OutputFile, Session
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.drafts import FIRST_VERSION, SessionDraft, store_edits
from chatcore.signals import session_forked
from chatcore.turns.versions import get_current_message

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
    "temporary",
    "project_id",
)


class SourceChanged(Exception):
    """Other messages of the source are current than when the copying began."""


def fork_session(
    message: Message, *, on_stored: Callable[[Session], object] = lambda session: None
) -> Session:
    """Create a session of the same owner with copies of the messages up to this one.

    The results of its tool calls are copied too. Numbers, times, pins, files and token counts stay
    the same; superseded messages are not copied. Nobody sees the fork before it is complete.
    `on_stored` is called in the transaction that shows it. Raises MessageSuperseded.
    """
    new_session = None
    while new_session is None:
        # The source is not locked while it is copied, so that its conversation can go on. If it was
        # edited meanwhile, the copy would be of no state that it ever had.
        with contextlib.suppress(SourceChanged):
            new_session = _copy_session(message, on_stored)
    # Only now: under the lock of the source, two forks could wait for each other's source.
    archive_surplus_sessions(new_session)
    new_session.refresh_from_db()
    return new_session


def _copy_session(message: Message, on_stored: Callable[[Session], object]) -> Session:
    """Return a complete fork. Raises SourceChanged and MessageSuperseded."""
    source = Session.objects.get(pk=message.session_id)
    get_current_message(source, message)
    messages = _select_messages_to_copy(source, message)
    last_seq = messages.aggregate(last=Max("seq"))["last"] or 0
    history_state = _read_history_state(source, last_seq)
    revision = _find_supported_revision(source, last_seq)
    columns = {name: getattr(source, name) for name in SESSION_COLUMNS}
    title = _build_title(source.title)
    with SessionDraft(owner_id=source.owner_id, title=title, **columns) as draft:
        message_count = _copy_messages(draft, messages.filter(seq__lte=last_seq))
        _copy_files(source, draft, last_seq)
        if revision:
            store_edits(draft, _load_edits(source, revision, last_seq))
        with draft.open_transaction(weigh_row(0)):
            source = Session.objects.lock(source.pk)
            if _read_history_state(source, last_seq) != history_state:
                raise SourceChanged
            draft.show(
                message_count=message_count,
                last_seq=last_seq,
                forked_from=source,
                forked_from_seq=message.seq,
                updated_at=timezone.now(),
            )
            if revision:
                _install_copied_revision(revision, draft.session, last_seq)
            session_forked.send(None, session=draft.session, source=source, last_seq=last_seq)
            on_stored(draft.session)
    return draft.session


def _build_title(title: str) -> str:
    """Return the title of a copy, so that the list does not show two equal ones."""
    max_chars = Session._meta.get_field("title").max_length
    return (_("Fork of %(title)s") % {"title": title})[:max_chars] if title else ""


def _read_history_state(
    source: Session, last_seq: int
) -> tuple[int, frozenset[tuple[int, UUID | None]]]:
    """Return what every edit, deletion or restored version up to this number changes.

    Indexes answer both queries, also in a long history.
    """
    messages = source.messages.filter(seq__lte=last_seq).order_by()
    superseded_messages = messages.filter(branch__isnull=False)
    return messages.count(), frozenset(superseded_messages.values_list("pk", "branch"))


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


def _copy_messages(draft: SessionDraft, messages: QuerySet[Message]) -> int:
    """Copy the messages, in order; return how many they are."""
    # A list, because an open query of this connection would keep it from writing.
    seqs_and_tokens = list(messages.values_list("seq", "token_estimate"))
    message_count = 0
    for part in draft.transactions.split(seqs_and_tokens, _weigh_copy):
        with draft.open_transaction(sum(map(_weigh_copy, part))):
            message_count += _copy_rows(
                messages.filter(seq__range=(part[0][0], part[-1][0])),
                excluded_columns=UNCOPIED_COLUMNS,
                session_id=draft.session.pk,
            )
    return message_count


def _weigh_copy(seq_and_tokens: tuple[int, int]) -> int:
    return weigh_row(seq_and_tokens[1] * CHARS_PER_TOKEN_ESTIMATE)


def _copy_files(source: Session, draft: SessionDraft, last_seq: int) -> None:
    message_copies = draft.session.messages.filter(seq=OuterRef("message__seq")).values("pk")
    attachments = Attachment.objects.filter(
        session=source, message__branch=None, message__seq__lte=last_seq
    ).order_by()
    copied_attachments = attachments.annotate(copy=Subquery(message_copies)).exclude(copy=None)
    for pk, size, copy_id in list(copied_attachments.values_list("pk", "size", "copy")):
        new_pk = uuid4()
        with draft.open_transaction(weigh_row(size)):
            _copy_rows(
                Attachment.objects.filter(pk=pk).order_by(),
                id=new_pk,
                session_id=draft.session.pk,
                message_id=copy_id,
            )
            # The copy of an output refers to the same file.
            _copy_rows(
                OutputFile.objects.filter(attachment=pk).order_by(),
                excluded_columns=("id",),
                attachment_id=new_pk,
                session_id=draft.session.pk,
            )


def _copy_rows(
    rows: QuerySet[Any], *, excluded_columns: Collection[str] = (), **overrides: object
) -> int:
    """Insert copies of the rows, with other values in the columns that `overrides` names.

    Returns how many. Columns in `excluded_columns` get the default of the database. One statement
    copies inside the database, so a long history is never loaded into this process.
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
        return cursor.rowcount


def _load_edits(
    source: Session, revision: ContextRevision, last_seq: int
) -> list[revisions.MessageEdit]:
    """Return the edits of copied messages that were in force under the revision."""
    message_filter = {"message__seq__lte": last_seq, "message__branch": None}
    edits = source.context_edits.filter(from_version__lte=revision.version, **message_filter)
    edit_rows = edits.exclude(until_version__lte=revision.version).values_list(
        "message__seq", "kind", "replacement"
    )
    return [
        revisions.MessageEdit(message_seq=seq, kind=kind, replacement=replacement)
        for seq, kind, replacement in edit_rows
    ]


def _install_copied_revision(
    revision: ContextRevision, new_session: Session, last_seq: int
) -> None:
    """Install a revision of the source as the first one of the fork, which has its edits."""
    revisions.install_revision(
        new_session.pk,
        base_version=FIRST_VERSION - 1,
        summary=revision.summary,
        boundary_seq=revision.boundary_seq,
        kept_seqs=[seq for seq in revision.kept_seqs if seq <= last_seq],
        background=revision.background,
        placement=_clamp_placement(revision.placement, last_seq),
        source=ContextRevision.Source.EDIT,
    )


def _clamp_placement(placement: dict[str, Any], last_seq: int) -> dict[str, object]:
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
