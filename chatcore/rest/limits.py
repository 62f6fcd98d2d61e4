"""Limits of requests: sizes in bytes, numbers of messages, turns a minute."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from rest_framework.throttling import UserRateThrottle

from chatcore.rest.problems import Problem

KB = 1024
MB = KB * KB
MESSAGE_BYTES = 256 * KB
BODY_BYTES = 2 * MB
IMPORT_BODY_BYTES = 50 * MB
IMPORT_MESSAGES = 10_000
SESSION_MESSAGES = 100_000  # in the import of an exported session


class TurnRateThrottle(UserRateThrottle):
    """A limit of turns a user may start in any 60 seconds.

    The count is in the cache, which all web processes share.
    """

    scope = "turns"

    def get_rate(self) -> str:
        """Return the setting in the form that the framework parses."""
        return f"{settings.CHATCORE['TURNS_PER_MINUTE']}/min"


def count_turn(request: Any) -> None:
    """Count a turn that the user is about to start.

    Raises the 429 problem with the seconds to wait if there were too many in the last minute.
    """
    throttle = TurnRateThrottle()
    # The throttle reads the cache and then writes it, so two requests at once could lose a count.
    # The lock on the user's row lets the requests of one user pass one after the other.
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=request.user.pk)
        is_allowed = throttle.allow_request(request, None)  # type: ignore[arg-type]
    if not is_allowed:
        detail = f"No more than {settings.CHATCORE['TURNS_PER_MINUTE']} turns a minute."
        raise Problem(429, "too_many_turns", detail, retry_after=throttle.wait() or 1)


def exceeds_bytes(text: str, max_bytes: int) -> bool:
    """Return True if the text takes more than `max_bytes` in UTF-8."""
    # No code point takes more than 4 bytes, so most texts need not be encoded to know.
    return len(text) * 4 > max_bytes and len(text.encode()) > max_bytes
