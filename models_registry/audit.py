"""Write down who changed or tested the connection to a provider: the address, never a key."""

import logging

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import AnonymousUser, User

from models_registry.models import Provider

logger = logging.getLogger(__name__)


def record_connection(user: User | AnonymousUser | None, provider: Provider, act: str) -> None:
    """Add an entry to the admin's log, and a line to the server's. A command has no user."""
    address = provider.base_url or "the SDK's own address"
    message = f"{act}: {provider.protocol} at {address}."
    if user is not None and user.pk is not None:
        LogEntry.objects.log_actions(
            user_id=user.pk,
            queryset=[provider],
            action_flag=CHANGE,
            change_message=message,
            single_object=True,
        )
    name = user.get_username() if user is not None else "a command"
    logger.info("provider %s, by %s: %s", provider.name, name, message)
