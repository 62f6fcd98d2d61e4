"""Whole histories in and out: messages of another system, sessions as JSON files, and a session's end."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from chatcore.context import tool_pairs
from chatcore.events import log as event_log
from chatcore.models import Attachment, ContextEdit, Message, Session, SessionEvent, Turn
from chatcore.providers.base import ChatMessage, ToolCall
from chatcore.transfer import context, formats, links
from chatcore.transfer.reader import (
    NotImportable,
    column_values,
    is_number,
    part,
    read_messages,
)
from chatcore.turns import service
from models_registry.models import AiModel

FORMAT = "chatcore-session-1"
SETTINGS = (
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
RECORD = (
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
LINKS = (
    "seq",
    "branch",
    "branch_after",
    "replaces",
    "attachments",
)  # what leads from one message to others, and to files
BATCH = 500  # rows an INSERT


class StillAnswering(Exception):
    """The session is generating an answer, and nothing may be put between that and its question."""

    def __init__(self, turn_id: UUID) -> None:
        super().__init__("The session is still answering.")
        self.turn_id = turn_id


def import_messages(session: Session, messages: Any) -> list[Message]:
    """Append messages given as parsed JSON, all or none, without calling a model. Returns them as stored.

    Raises NotImportable, which names the field, and StillAnswering.
    """
    rows = read_messages(messages, known_calls=lambda: _calls_of(session))
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        answering = Q(status=Turn.Status.RUNNING, lease_until__gt=timezone.now()) | Q(
            status=Turn.Status.WAITING
        )
        running = locked.turns.filter(answering).first()
        if running:
            raise StillAnswering(running.pk)
        return _append(locked, rows)


def delete_session(session_id: UUID) -> None:
    """Delete a session and all that is in it, stopping the answer that is being given.

    Whoever writes to a session locks its turn first, then its row: in that order nobody adds to what is being deleted.
    """
    service.cancel(session_id)
    with transaction.atomic():
        list(
            Turn.objects.select_for_update()
            .filter(session_id=session_id)
            .order_by("pk")
            .values_list("pk")
        )
        if session := Session.objects.select_for_update().filter(pk=session_id).first():
            _empty(session)
            session.delete()


def _empty(session: Session) -> None:
    """The long tables first, a statement each: collecting 100,000 rows holds a database longer than others wait for it."""
    for model in (SessionEvent, ContextEdit, Attachment, Message):
        rows = model._default_manager.filter(session=session).order_by()
        rows._raw_delete(rows.db)


def export_session(session: Session) -> dict[str, Any]:
    """A session as JSON values: its settings, every message, and what the model sees of them."""
    model = str(session.model) if session.model else None
    spoken = session.messages.exclude(status=Message.Status.STREAMING).order_by("seq")
    rows = spoken.select_related("replaces").prefetch_related("attachments")
    return {
        "format": FORMAT,
        "session": {name: getattr(session, name) for name in (*SETTINGS, "last_seq")}
        | {"model": model},
        "messages": [
            _exported(message) | links.of(message) for message in rows.iterator(chunk_size=BATCH)
        ],
        "context": context.of(session),
    }


def export_as(session: Session, format: formats.Format) -> dict[str, Any]:
    """`export_session`, or what is current of the session as OpenAI's or Anthropic's API takes it."""
    if format == "chatcore":
        return export_session(session)
    prompt = [{"role": "system", "content": session.system_prompt}] if session.system_prompt else []
    messages = [*prompt, *(asdict(message) for message in tool_pairs.paired(_said(session)))]
    return (
        {"messages": formats.to_openai(messages)}
        if format == "openai"
        else formats.to_anthropic(messages)
    )


def import_session(owner: Any, exported: Any) -> Session:
    """A new session of `owner`'s from what `export_session` gave, with its summary. Raises NotImportable, which names the field."""
    if not isinstance(exported, Mapping) or exported.get("format") != FORMAT:
        raise NotImportable(
            "format", f"The file is not a session as this program exports it ({FORMAT})."
        )
    settings, shown, messages = (
        part(exported, name, kind)
        for name, kind in (("session", dict), ("context", dict), ("messages", list))
    )
    known = _settings(settings)
    rows = read_messages([_alone(item) for item in messages], also=RECORD)
    last = max(links.number(messages, rows), _last_seq(settings))
    attached = links.read_files(messages)  # before anything is locked: it takes long
    with transaction.atomic():
        session = Session.objects.create(owner=owner, model=_model(settings.get("model")), **known)
        _append(session, rows)
        links.restore(messages, rows)
        links.store_files(attached, rows)
        Session.objects.filter(pk=session.pk).update(
            message_count=sum(row.branch is None for row in rows), last_seq=last
        )
        context.restore(session, shown, {row.seq for row in rows}, last)
    session.refresh_from_db()
    return session


def _append(session: Session, rows: list[Message]) -> list[Message]:
    """Store the rows, numbered where they have no numbers; the session's row is locked, so no other message takes them."""
    for seq, row in enumerate(rows, start=session.last_seq + 1):
        row.session, row.seq = session, row.seq or seq
    stored = Message.objects.bulk_create(rows, batch_size=BATCH)
    last = rows[-1].seq if rows else session.last_seq
    count = F("message_count") + len(rows)
    Session.objects.filter(pk=session.pk).update(
        last_seq=last, message_count=count, updated_at=timezone.now()
    )
    event_log.append(session.pk, ("session.updated", {"fields": ["message_count"]}))
    return stored


def _calls_of(session: Session) -> set[str]:
    calls = (
        session.messages.filter(role=Message.Role.ASSISTANT)
        .exclude(tool_calls=[])
        .values_list("tool_calls", flat=True)
    )
    return {call["id"] for made in calls for call in made}


def _exported(message: Message) -> dict[str, Any]:
    spoken = (
        "seq",
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "tool_name",
        "is_error",
        *RECORD,
    )
    return {name: getattr(message, name) for name in spoken} | {
        "created_at": message.created_at.isoformat()
    }


def _said(session: Session) -> list[ChatMessage]:
    """What is current and was said, interrupted answers too; without files."""
    rows = (
        session.messages.current()
        .exclude(status__in=(Message.Status.STREAMING, Message.Status.FAILED))
        .order_by("seq")
    )
    names = ("seq", "role", "content", "tool_calls", "tool_call_id", "tool_name", "is_error")
    return [_message(**row) for row in rows.values(*names).iterator(chunk_size=BATCH)]


def _message(*, tool_calls: Sequence[Mapping[str, str]], **said: Any) -> ChatMessage:
    return ChatMessage(**said, tool_calls=tuple(ToolCall(**call) for call in tool_calls))


def _model(name: Any) -> AiModel | None:
    """The model of that name where it is known here; the default one elsewhere."""
    return (
        AiModel.objects.named(name) if isinstance(name, str) else None
    ) or AiModel.objects.default()


def _alone(item: Any) -> Any:
    return (
        {name: value for name, value in item.items() if name not in LINKS}
        if isinstance(item, Mapping)
        else item
    )


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The session's own fields. Raises NotImportable."""
    known = column_values(Session, given, SETTINGS, "session")
    tools = known.get("tools")
    if tools is not None and not (
        isinstance(tools, list) and all(isinstance(name, str) for name in tools)
    ):
        raise NotImportable("session.tools", "A list of names, or null.")
    if not isinstance(known.get("params", {}), dict):
        raise NotImportable("session.params", "An object.")
    if not 0 <= (known.get("compact_threshold") or 0) <= 1:
        raise NotImportable("session.compact_threshold", "From 0 to 1, or null.")
    return known


def _last_seq(settings: Mapping[str, Any]) -> int:
    """The number of the newest message there ever was; it may have been deleted."""
    last = settings.get("last_seq", 0)
    if not is_number(last) or not 0 <= last <= links.BIGGEST_NUMBER:
        raise NotImportable("session.last_seq", "A whole number.")
    return int(last)
