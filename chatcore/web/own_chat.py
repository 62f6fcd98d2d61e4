"""What the pages of a chat share: whose it is, and in which zone they show times."""

import contextlib
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone

from chatcore.models import Session, UserPreferences
from chatcore.models.user_preferences import MAX_ZONE_NAME

ZONE_KEY = "time_zone"  # in the browser's session

R = TypeVar("R", bound=HttpResponseBase)


def get_own_chat(request: HttpRequest, pk: UUID) -> Session:
    """Return the user's chat. Raises Http404 for the chats of other users too."""
    return get_object_or_404(
        Session.objects.owned_by(request.user).select_related("model__provider"), pk=pk
    )


def use_local_time(view: Callable[..., R]) -> Callable[..., R]:
    """Wrap a view so that it shows times in the zone of the browser's cookie `tz`.

    The zone is kept for the user too, because summaries and memory name the days of messages.
    """

    def wrapper(request: HttpRequest, *args: object, **kwargs: object) -> R:
        name = request.COOKIES.get("tz", "")
        try:
            zone = ZoneInfo(name or settings.TIME_ZONE)
        except (KeyError, ValueError, OSError):
            zone, name = ZoneInfo(settings.TIME_ZONE), ""
        if name:
            _keep_time_zone(request, name)
        with timezone.override(zone):
            return view(request, *args, **kwargs)

    return wrapper


def _keep_time_zone(request: HttpRequest, name: str) -> None:
    """Store the zone of a user's browser, once for each time that it changes.

    The browser's session notes it, which is loaded in any case. So a zone that the user sets over
    REST is not replaced by the next page.
    """
    if request.user.pk is None or request.session.get(ZONE_KEY) == name:
        return
    if len(name) > MAX_ZONE_NAME:
        return
    # A page can be read while nothing can be written; the next one stores it.
    with contextlib.suppress(DatabaseError):
        UserPreferences.keep(request.user.pk, time_zone=name)
        request.session[ZONE_KEY] = name
