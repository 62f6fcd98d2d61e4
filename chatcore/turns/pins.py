"""Pins: a pinned message is sent verbatim for ever, outside of any summary."""

from django.db import transaction
from django.utils import timezone

from chatcore.events import log as event_log
from chatcore.models import Message, Session


def pin_message(message: Message, *, pinned: bool = True) -> None:
    """Pin or unpin; doing it twice changes nothing. Pages are told."""
    with transaction.atomic():
        list(
            Session.objects.select_for_update().filter(pk=message.session_id).values_list("pk")
        )  # first, as whoever deletes does
        if Message.objects.filter(pk=message.pk).exclude(pinned=pinned).update(pinned=pinned):
            Session.objects.filter(pk=message.session_id).update(updated_at=timezone.now())
            event_log.append_events(
                message.session_id,
                (
                    "session.updated",
                    {"fields": ["messages"], "message": message.pk, "pinned": pinned},
                ),
            )
    message.pinned = pinned
