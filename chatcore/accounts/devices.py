"""The browsers that a person is signed in on: noted, listed and signed out."""

import contextlib
import time
from collections.abc import Callable

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session as BrowserSession
from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponse

NOTED_EVERY_SECONDS = 300
MAX_REMEMBERED = 10_000


class Devices:
    """Middleware that notes when and from where a browser was last used, every few minutes.

    Each web process remembers for itself what it has noted; a row is written twice at worst.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._noted_at: dict[str, float] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # The pages only: a request of the API may come by a token, and streams come often.
        if not request.path.startswith(("/api/", "/v1/")):
            self._note(request)
        return response

    def _note(self, request: HttpRequest) -> None:
        key = request.session.session_key
        if not key or time.monotonic() - self._noted_at.get(key, -NOTED_EVERY_SECONDS) < (
            NOTED_EVERY_SECONDS
        ):
            return
        if len(self._noted_at) >= MAX_REMEMBERED:
            self._noted_at.clear()
        # A page is not refused because its visit cannot be noted.
        with contextlib.suppress(DatabaseError):
            if _is_signed_in(request):
                self._noted_at[key] = time.monotonic()
                with transaction.atomic():
                    UserSession.objects.create_from_request(request)


def _is_signed_in(request: HttpRequest) -> bool:
    """Return whether the browser is signed in now; it may just have signed out."""
    if not request.user.is_authenticated:
        return False
    return BrowserSession.objects.filter(pk=request.session.session_key).exists()
