"""Store messages of turns, describe them in events, and pin them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from chatcore.events import log as event_log
from chatcore.events.types import (
    EventType,
    MessageCompletedPayload,
    MessageCreatedPayload,
    NewEvent,
    UsagePayload,
)
from chatcore.models import Message, Session, Turn
from chatcore.models.statements import NewRows, reserve_numbers
from chatcore.sessions.changes import record_session_change

# Builds an event of a message that was just stored, and so has its primary key and number.
EventBuilder = Callable[[Message], NewEvent]


class StoredMessage(NamedTuple):
    """A message that was just stored, and the number of the last event that announced it."""

    message: Message
    last_event_seq: int


def append_message(
    session_id: UUID, turn: Turn | None, *build_events: EventBuilder, **fields: Any
) -> Message:
    """Store a message with the next number of its session, and the events that announce it.

    Call it inside a transaction. Raises Session.DoesNotExist if the session is deleted.
    """
    return store_message(session_id, turn, *build_events, **fields).message


def store_message(
    session_id: UUID,
    turn: Turn | None,
    *build_events: EventBuilder,
    used_at: datetime | None = None,
    **fields: object,
) -> StoredMessage:
    """Do what `append_message` does, and return the number of the last event as well.

    `used_at` moves the session to the top of its owner's list. The turn may be stored later in the
    same transaction.
    """
    new_rows = {session_id: NewRows(events=len(build_events), messages=1)}
    numbers = reserve_numbers(new_rows, used_at=used_at).get(session_id)
    if numbers is None:
        raise Session.DoesNotExist(f"Session {session_id} is deleted.")
    owner = {"session_id": session_id, "owner_id": numbers.owner_id}
    message = Message(**owner, turn=turn, seq=numbers.seq, **fields)
    message.save(force_insert=True)
    if build_events:
        new_events = [build_event(message) for build_event in build_events]
        event_log.store_numbered_events({session_id: new_events}, {session_id: numbers})
    return StoredMessage(message, numbers.event_seq)


def build_created_event(message: Message) -> NewEvent:
    """Return the event `message.created`."""
    return EventType.MESSAGE_CREATED, build_created_payload(message)


def build_completed_event(message: Message) -> NewEvent:
    """Return the event `message.completed`."""
    return EventType.MESSAGE_COMPLETED, build_completed_payload(message)


def build_created_payload(message: Message) -> MessageCreatedPayload:
    """Return the data of `message.created`."""
    payload = MessageCreatedPayload(
        message=message.pk,
        role=str(message.role),
        message_seq=message.seq,
        turn=_format_turn_id(message),
    )
    if message.replaces_id:
        payload["replaces"] = message.replaces_id
    if message.role == Message.Role.ASSISTANT and message.turn and message.turn.recalled:
        payload["recalled"] = len(message.turn.recalled["passages"])
    if message.left_out_count is not None:
        payload["left_out"] = message.left_out_count
    return payload


def build_completed_payload(message: Message) -> MessageCompletedPayload:
    """Return the data of `message.completed`."""
    usage: UsagePayload | None = None
    if message.token_count_input is not None:
        usage = UsagePayload(
            input=message.token_count_input,
            output=message.token_count_output,
            cache_read=message.token_count_cache_read,
            cache_write=message.token_count_cache_write,
        )
    return MessageCompletedPayload(
        message=message.pk,
        role=message.role,
        status=message.status,
        usage=usage,
        turn=_format_turn_id(message),
        finish_reason=message.finish_reason or None,
        context_trimmed=message.context_trimmed,
    )


def _format_turn_id(message: Message) -> str | None:
    return str(message.turn_id) if message.turn_id else None


def pin_message(message: Message, *, pinned: bool = True) -> None:
    """Pin or unpin a message and announce it; doing it twice changes nothing."""
    with transaction.atomic():
        # The session is locked before its messages, because a deletion does it in this order.
        try:
            Session.objects.lock(message.session_id)
        except Session.DoesNotExist:
            return
        changed_messages = Message.objects.filter(pk=message.pk).exclude(pinned=pinned)
        if changed_messages.update(pinned=pinned):
            record_session_change(
                message.session_id, fields=["messages"], message=message.pk, pinned=pinned
            )
    message.pinned = pinned
