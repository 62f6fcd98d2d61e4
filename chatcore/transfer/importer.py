"""Import messages of another system into a session, or a whole exported session."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from chatcore.models import Message, Session, Turn
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.changes import count_current_messages, record_session_change
from chatcore.transfer import context, links
from chatcore.transfer.exporter import FORMAT, RECORD_FIELDS, SETTING_FIELDS
from chatcore.transfer.reader import (
    InvalidImport,
    is_number,
    read_column_values,
    read_messages,
    read_section,
)
from models_registry.models import AiModel

BATCH_SIZE = 500  # rows of one INSERT

# The fields that lead from one message to others and to files; `links.py` reads them.
LINK_FIELDS = ("seq", "branch", "branch_after", "replaces", "attachments")


class SessionBusy(Exception):
    """The session is generating an answer; a message would come between question and answer."""

    def __init__(self, turn_id: UUID) -> None:
        super().__init__("The session is still answering.")
        self.turn_id = turn_id


def import_messages(session: Session, messages: Any) -> list[Message]:
    """Append messages given as parsed JSON, all or none, and return them as stored.

    No model is called. Raises InvalidImport, which names the field, and SessionBusy.
    """
    rows = read_messages(messages, load_call_ids=lambda: _load_call_ids(session))
    with transaction.atomic():
        locked_session = Session.objects.lock(session.pk)
        # A running turn whose lease has ended belongs to a dead process, and does not count.
        open_turns = Q(status=Turn.Status.RUNNING, lease_until__gt=timezone.now()) | Q(
            status=Turn.Status.WAITING
        )
        open_turn = locked_session.turns.filter(open_turns).first()
        if open_turn:
            raise SessionBusy(open_turn.pk)
        return _append_messages(locked_session, rows)


def import_session(owner: Any, export_data: Any) -> Session:
    """Create a session of the user `owner` from what `export_session` returned, with its summary.

    Raises InvalidImport, which names the field; then nothing is stored.
    """
    if not isinstance(export_data, Mapping) or export_data.get("format") != FORMAT:
        raise InvalidImport(
            "format", f"The file is not a session as this program exports it ({FORMAT})."
        )
    settings = read_section(export_data, "session", dict)
    context_data = read_section(export_data, "context", dict)
    messages = read_section(export_data, "messages", list)
    setting_values = _parse_settings(settings)
    rows = read_messages([_strip_links(item) for item in messages], extra_fields=RECORD_FIELDS)
    last_seq = max(links.assign_seqs(messages, rows), _parse_last_seq(settings))
    # Files are inspected before the transaction begins, because that may take long.
    attachments = links.read_files(messages)
    with transaction.atomic():
        session = Session.objects.create(
            owner=owner, model=_find_model(settings.get("model")), **setting_values
        )
        _append_messages(session, rows)
        links.restore_links(messages, rows)
        links.store_files(attachments, rows)
        # Links decide which messages are superseded, so the count is known only now.
        Session.objects.filter(pk=session.pk).update(
            message_count=count_current_messages(session.pk), last_seq=last_seq
        )
        context.restore_context(session, context_data, {row.seq for row in rows}, last_seq)
    # Like every new session this one may exceed the number that is listed; the oldest are archived.
    archive_surplus_sessions(session)
    session.refresh_from_db()
    return session


def _append_messages(session: Session, rows: list[Message]) -> list[Message]:
    """Store the rows, and number those without a number after the session's last message.

    The session's row must be locked, so that no other writer gives out the same numbers.
    """
    for seq, row in enumerate(rows, start=session.last_seq + 1):
        row.session = session
        row.seq = row.seq or seq
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


def _find_model(name: Any) -> AiModel | None:
    """Return the model of this name, or the default model where the name is unknown."""
    model = AiModel.objects.find_by_name(name) if isinstance(name, str) else None
    return model or AiModel.objects.find_default()


def _strip_links(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {name: value for name, value in item.items() if name not in LINK_FIELDS}


def _parse_settings(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session's own columns. Raises InvalidImport."""
    values = read_column_values(Session, data, SETTING_FIELDS, "session")
    tools = values.get("tools")
    if tools is not None and not _is_name_list(tools):
        raise InvalidImport("session.tools", "It must be a list of names, or null.")
    if not isinstance(values.get("params", {}), dict):
        raise InvalidImport("session.params", "It must be an object.")
    if not 0 <= (values.get("compact_threshold") or 0) <= 1:
        raise InvalidImport(
            "session.compact_threshold", "It must be a number from 0 to 1, or null."
        )
    return values


def _is_name_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _parse_last_seq(settings: Mapping[str, Any]) -> int:
    """Return the highest number ever given to a message, which may have been deleted."""
    last_seq = settings.get("last_seq", 0)
    if not is_number(last_seq) or not 0 <= last_seq <= links.MAX_SEQ:
        raise InvalidImport("session.last_seq", "It must be a whole number, not negative.")
    return int(last_seq)
