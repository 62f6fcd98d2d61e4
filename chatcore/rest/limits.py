"""How much is taken: sizes, counts and turns a minute."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from rest_framework.throttling import UserRateThrottle

from chatcore.rest.problems import Problem

KB = 1024
MESSAGE_BYTES = 256 * KB
BODY_BYTES = 2 * KB * KB
IMPORT_BODY_BYTES = 50 * KB * KB
IMPORT_MESSAGES = 10_000
SESSION_MESSAGES = 100_000  # of a session that was exported


class TurnRateThrottle(UserRateThrottle):
    """So many turns in any 60 seconds a user, remembered in the cache that all web processes share."""

    scope = "turns"

    def get_rate(self) -> str:
        """The setting, in the words of the framework."""
        return f"{settings.CHATCORE['TURNS_PER_MINUTE']}/min"


def count_turn(request: Any) -> None:
    """Note that the user starts a turn now. Raises the 429 problem, with the seconds to wait, when there were too many."""
    throttle = TurnRateThrottle()
    with (
        transaction.atomic()
    ):  # one after the other for each user: the cache itself would lose counts to one another
        get_user_model().objects.select_for_update(no_key=True).get(pk=request.user.pk)
        is_allowed = throttle.allow_request(request, None)  # type: ignore[arg-type]
    if not is_allowed:
        detail = f"No more than {settings.CHATCORE['TURNS_PER_MINUTE']} turns a minute."
        raise Problem(429, "too_many_turns", detail, retry_after=throttle.wait() or 1)
