"""What the pages of a chat share: whose it is, and in which zone they show times."""

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone

from chatcore.models import Session

R = TypeVar("R", bound=HttpResponseBase)


def get_own_chat(request: HttpRequest, pk: UUID) -> Session:
    """Return the user's chat. Raises Http404 for the chats of other users too."""
    return get_object_or_404(
        Session.objects.owned_by(request.user).select_related("model__provider"), pk=pk
    )


def use_local_time(view: Callable[..., R]) -> Callable[..., R]:
    """Wrap a view so that it shows times in the zone of the browser's cookie `tz`."""

    def wrapper(request: HttpRequest, *args: object, **kwargs: object) -> R:
        try:
            zone = ZoneInfo(request.COOKIES.get("tz", "UTC"))
        except (KeyError, ValueError, OSError):
            zone = ZoneInfo("UTC")
        with timezone.override(zone):
            return view(request, *args, **kwargs)

    return wrapper
