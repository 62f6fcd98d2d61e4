"""Whole histories in and out: messages of another system, sessions as JSON files, and a session's end."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from chatcore.context import tool_pairs
from chatcore.models import Attachment, ContextEdit, Message, Session, SessionEvent, Turn
from chatcore.providers.base import ChatMessage, ToolCall
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.changes import count_current_messages, record_session_change
from chatcore.transfer import context, formats, links
from chatcore.transfer.reader import (
    InvalidImport,
    is_number,
    read_column_values,
    read_messages,
    read_section,
)
from chatcore.turns import leases, service
from models_registry.models import AiModel

FORMAT = "chatcore-session-1"
SETTING_FIELDS = (
    "title",
    "system_prompt",
    "policy",
    "auto_compact",
    "compact_threshold",
    "tools",
    "params",
    "pinned",
    "archived",
)
RECORD_FIELDS = (
    "reasoning",
    "status",
    "model",
    "pinned",
    "token_count_input",
    "token_count_output",
    "token_count_cache_read",
    "token_count_cache_write",
    "original_chars",
    "tool_result_limit",
    "provider_data",
)
LINK_FIELDS = (
    "seq",
    "branch",
    "branch_after",
    "replaces",
    "attachments",
)  # what leads from one message to others, and to files
BATCH_SIZE = 500  # rows an INSERT


class SessionBusy(Exception):
    """The session is generating an answer, and nothing may be put between that and its question."""

    def __init__(self, turn_id: UUID) -> None:
        super().__init__("The session is still answering.")
        self.turn_id = turn_id


def import_messages(session: Session, messages: Any) -> list[Message]:
    """Append messages given as parsed JSON, all or none, without calling a model. Returns them as stored.

    Raises NotImportable, which names the field, and StillAnswering.
    """
    rows = read_messages(messages, load_call_ids=lambda: _load_call_ids(session))
    with transaction.atomic():
        session_row = Session.objects.lock(session.pk)
        open_turns = Q(status=Turn.Status.RUNNING, lease_until__gt=timezone.now()) | Q(
            status=Turn.Status.WAITING
        )
        open_turn = session_row.turns.filter(open_turns).first()
        if open_turn:
            raise SessionBusy(open_turn.pk)
        return _append_messages(session_row, rows)


def delete_session(session_id: UUID) -> None:
    """Delete a session and all that is in it, stopping the answer that is being given.

    Whoever writes to a session locks its turn first, then its row: in that order nobody adds to what is being deleted.
    """
    is_deleted = False
    while not is_deleted:
        service.cancel_turn(session_id)
        is_deleted = _delete_with_turns(session_id)


def _delete_with_turns(session_id: UUID) -> bool:
    """Delete the session unless a turn has begun meanwhile; return False in that case."""
    with transaction.atomic():
        locked_turn_count = leases.lock_turns(Turn.objects.filter(session_id=session_id))
        try:
            session = Session.objects.lock(session_id)
        except Session.DoesNotExist:
            return True
        # A turn that began between the two locks is not locked. Its writer may already hold the
        # turn and wait for the session, so deleting the turn now would make both wait forever.
        # Leaving the transaction releases the locks; the next attempt locks that turn first.
        if session.turns.count() != locked_turn_count:
            return False
        _delete_rows(session)
        session.delete()
        return True


def _delete_rows(session: Session) -> None:
    """The long tables first, a statement each: collecting 100,000 rows holds a database longer than others wait for it."""
    for model in (SessionEvent, ContextEdit, Attachment, Message):
        rows = model._default_manager.filter(session=session).order_by()
        rows._raw_delete(rows.db)


def export_session(session: Session) -> dict[str, Any]:
    """A session as JSON values: its settings, every message, and what the model sees of them."""
    model = str(session.model) if session.model else None
    finished_messages = session.messages.exclude(status=Message.Status.STREAMING).order_by("seq")
    rows = finished_messages.select_related("replaces").prefetch_related("attachments")
    return {
        "format": FORMAT,
        "session": {name: getattr(session, name) for name in (*SETTING_FIELDS, "last_seq")}
        | {"model": model},
        "messages": [
            _export_message(message) | links.export_links(message)
            for message in rows.iterator(chunk_size=BATCH_SIZE)
        ],
        "context": context.export_context(session),
    }


def export_as(session: Session, format: formats.Format) -> dict[str, Any]:
    """`export_session`, or what is current of the session as OpenAI's or Anthropic's API takes it."""
    if format == "chatcore":
        return export_session(session)
    system_messages = (
        [{"role": "system", "content": session.system_prompt}] if session.system_prompt else []
    )
    messages = [
        *system_messages,
        *(
            asdict(message)
            for message in tool_pairs.pair_tool_calls(_load_current_messages(session))
        ),
    ]
    return (
        {"messages": formats.to_openai(messages)}
        if format == "openai"
        else formats.to_anthropic(messages)
    )


def import_session(owner: Any, export_data: Any) -> Session:
    """A new session of `owner`'s from what `export_session` gave, with its summary. Raises NotImportable, which names the field."""
    if not isinstance(export_data, Mapping) or export_data.get("format") != FORMAT:
        raise InvalidImport(
            "format", f"The file is not a session as this program exports it ({FORMAT})."
        )
    settings, context_data, messages = (
        read_section(export_data, name, kind)
        for name, kind in (("session", dict), ("context", dict), ("messages", list))
    )
    setting_values = _parse_settings(settings)
    rows = read_messages([_strip_links(item) for item in messages], extra_fields=RECORD_FIELDS)
    last_seq = max(links.assign_seqs(messages, rows), _parse_last_seq(settings))
    attachments = links.read_files(messages)  # before anything is locked: it takes long
    with transaction.atomic():
        session = Session.objects.create(
            owner=owner, model=_find_model(settings.get("model")), **setting_values
        )
        _append_messages(session, rows)
        links.restore_links(messages, rows)
        links.store_files(attachments, rows)
        Session.objects.filter(pk=session.pk).update(
            message_count=count_current_messages(session.pk), last_seq=last_seq
        )
        context.restore_context(session, context_data, {row.seq for row in rows}, last_seq)
    archive_surplus_sessions(session)
    session.refresh_from_db()
    return session


def _append_messages(session: Session, rows: list[Message]) -> list[Message]:
    """Store the rows, numbered where they have no numbers; the session's row is locked, so no other message takes them."""
    for seq, row in enumerate(rows, start=session.last_seq + 1):
        row.session, row.seq = session, row.seq or seq
    messages = Message.objects.bulk_create(rows, batch_size=BATCH_SIZE)
    last_seq = rows[-1].seq if rows else session.last_seq
    record_session_change(
        session.pk,
        {"last_seq": last_seq, "message_count": F("message_count") + len(rows)},
        fields=["message_count"],
    )
    return messages


def _load_call_ids(session: Session) -> set[str]:
    calls = (
        session.messages.filter(role=Message.Role.ASSISTANT)
        .exclude(tool_calls=[])
        .values_list("tool_calls", flat=True)
    )
    return {call["id"] for message_calls in calls for call in message_calls}


def _export_message(message: Message) -> dict[str, Any]:
    field_names = (
        "seq",
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "tool_name",
        "is_error",
        *RECORD_FIELDS,
    )
    return {name: getattr(message, name) for name in field_names} | {
        "created_at": message.created_at.isoformat()
    }


def _load_current_messages(session: Session) -> list[ChatMessage]:
    """What is current and was said, interrupted answers too; without files."""
    rows = (
        session.messages.exclude_superseded()
        .exclude(status__in=(Message.Status.STREAMING, Message.Status.FAILED))
        .order_by("seq")
    )
    names = ("seq", "role", "content", "tool_calls", "tool_call_id", "tool_name", "is_error")
    return [
        _build_chat_message(**row) for row in rows.values(*names).iterator(chunk_size=BATCH_SIZE)
    ]


def _build_chat_message(*, tool_calls: Sequence[Mapping[str, str]], **fields: Any) -> ChatMessage:
    return ChatMessage(**fields, tool_calls=tuple(ToolCall(**call) for call in tool_calls))


def _find_model(name: Any) -> AiModel | None:
    """The model of that name where it is known here; the default one elsewhere."""
    return (
        AiModel.objects.find_by_name(name) if isinstance(name, str) else None
    ) or AiModel.objects.find_default()


def _strip_links(item: Any) -> Any:
    return (
        {name: value for name, value in item.items() if name not in LINK_FIELDS}
        if isinstance(item, Mapping)
        else item
    )


def _parse_settings(data: Mapping[str, Any]) -> dict[str, Any]:
    """The session's own fields. Raises NotImportable."""
    values = read_column_values(Session, data, SETTING_FIELDS, "session")
    tools = values.get("tools")
    if tools is not None and not (
        isinstance(tools, list) and all(isinstance(name, str) for name in tools)
    ):
        raise InvalidImport("session.tools", "A list of names, or null.")
    if not isinstance(values.get("params", {}), dict):
        raise InvalidImport("session.params", "An object.")
    if not 0 <= (values.get("compact_threshold") or 0) <= 1:
        raise InvalidImport("session.compact_threshold", "From 0 to 1, or null.")
    return values


def _parse_last_seq(settings: Mapping[str, Any]) -> int:
    """The number of the newest message there ever was; it may have been deleted."""
    last_seq = settings.get("last_seq", 0)
    if not is_number(last_seq) or not 0 <= last_seq <= links.MAX_SEQ:
        raise InvalidImport("session.last_seq", "A whole number.")
    return int(last_seq)
