"""Pins: a pinned message is always sent word for word, outside of any summary."""

from django.db import transaction

from chatcore.models import Message, Session
from chatcore.sessions.changes import record_session_change


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
