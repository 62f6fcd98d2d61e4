"""The one way to change a session and to announce it."""

from collections.abc import Collection, Mapping
from typing import Unpack
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatcore.base.keeping import refuse_lost_words
from chatcore.events import log as event_log
from chatcore.events.types import EventType, SessionUpdatedPayload, UpdatedMessagePayload
from chatcore.models import Message, Session

# What requests send besides the messages. A provider's count from before a change of it says
# nothing about the next request.
OVERHEAD_FIELDS = frozenset({"project", "system_prompt", "tools"})
HELD_FIELDS = ("title", "system_prompt")  # words of the person


def record_session_change(
    session_id: UUID,
    values: Mapping[str, object] | None = None,
    *,
    fields: Collection[str] | None = None,
    is_user_act: bool = True,
    **event_data: Unpack[UpdatedMessagePayload],
) -> None:
    """Write columns of a session and append the event `session.updated`, in one transaction.

    `fields` are the names that the event announces; by default those of the written columns.
    `is_user_act` moves `updated_at`, and so the session to the top of its owner's list.
    Raises Session.DoesNotExist if the session was deleted, and Kept if words would be lost.
    """
    columns = dict(values or {})
    announced_fields = sorted(columns) if fields is None else list(fields)
    if not OVERHEAD_FIELDS.isdisjoint(columns):
        columns["overhead_since"] = timezone.now()
    if is_user_act:
        columns["updated_at"] = timezone.now()
    # Written together, so that no page hears of a change that is rolled back, and no change is
    # committed that open pages never hear of.
    with transaction.atomic():
        session_row = Session.objects.filter(pk=session_id)
        texts = {name: columns[name] for name in HELD_FIELDS if name in columns}
        if texts:
            for session in session_row.only("owner", *HELD_FIELDS):
                refuse_lost_words(session.owner_id, session, texts)
        is_stored = session_row.update(**columns) if columns else session_row.exists()
        if not is_stored:
            raise Session.DoesNotExist
        payload = SessionUpdatedPayload(fields=announced_fields, **event_data)
        event_log.append_events(session_id, (EventType.SESSION_UPDATED, payload))


def record_differences(session: Session, values: Mapping[str, object]) -> None:
    """Record those values of a session that it does not have yet."""
    changes = {name: value for name, value in values.items() if getattr(session, name) != value}
    if changes:
        record_session_change(session.pk, changes)


def announce_context_change(session_id: UUID, version: int) -> None:
    """Append the event of a new version of the context, in the transaction that installed it."""
    payload = SessionUpdatedPayload(context_version=version)
    event_log.append_events(session_id, (EventType.SESSION_UPDATED, payload))


def record_history_change(session_id: UUID, values: Mapping[str, object] | None = None) -> None:
    """Record that other messages than before are current; `values` are columns to write besides."""
    columns = {**(values or {}), "message_count": count_current_messages(session_id)}
    record_session_change(session_id, columns, fields=["message_count", "messages"])


def count_current_messages(session_id: UUID) -> int:
    """Return the number of messages that no edit and no other answer has superseded."""
    messages = Message.objects.filter(session=session_id).order_by()
    # Two counts, because each is answered by an index; one would read every message.
    return messages.count() - messages.filter(branch__isnull=False).count()
