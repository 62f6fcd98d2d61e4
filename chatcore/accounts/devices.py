"""The browsers that a person is signed in on: noted, listed and signed out."""

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session as BrowserSession
from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponse

from chatcore.accounts import audit
from chatcore.base.rest.refusals import is_api_path

BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari")  # the first that is named counts
BROWSER_NAMES = {"Edg": "Edge", "OPR": "Opera"}
SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "CrOS", "Linux")
NOTED_EVERY_SECONDS = 300
MAX_REMEMBERED = 10_000


@dataclass(frozen=True)
class Device:
    """A browser that a person is signed in on."""

    row: UserSession
    name: str
    is_current: bool


def list_devices(request: HttpRequest) -> list[Device]:
    """Return the browsers that the person is signed in on, those used last first."""
    rows = UserSession.objects.purge_and_list(request.user)
    rows.sort(key=lambda row: row.last_seen_at, reverse=True)
    own_key = request.session.session_key
    return [
        Device(row, describe_browser(row.user_agent), row.session_key == own_key) for row in rows
    ]


def note_device(request: HttpRequest) -> int:
    """Note that the browser is used now; return the number of its row."""
    UserSession.objects.create_from_request(request)
    pk: int = UserSession.objects.get(session_key=request.session.session_key).pk
    return pk


def end_devices(request: HttpRequest, **which: int) -> int:
    """Sign those of the person's other browsers out that the filters name; return how many.

    Streams that are open on them end within seconds (sign_out_watch.py).
    """
    rows = UserSession.objects.filter(user_id=request.user.pk, **which)
    own_key = request.session.session_key
    with transaction.atomic():
        others = list(rows.exclude(session_key=own_key).select_related("user"))
        for row in others:
            audit.record("sign_in.ended", target=row.user, detail=f"device {row.pk}")
            row.end()
    return len(others)


def describe_browser(user_agent: str) -> str:
    """Return what a browser calls itself in few words, as "Firefox, Linux"."""
    matches = [name for name in BROWSERS if re.search(rf"\b(?:Headless)?{name}/", user_agent)]
    systems = [name for name in SYSTEMS if name in user_agent]
    words = [BROWSER_NAMES.get(name, name) for name in matches[:1]] + systems[:1]
    return ", ".join(words) or user_agent[:40] or "?"


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
        if not is_api_path(request.path_info):
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
