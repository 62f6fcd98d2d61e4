"""Slow down who guesses passwords: django-axes counts failures by account and by address.

The counts are in the database, so all web processes share them. A count is not reset by a success:
whoever has an account could otherwise guess on between two visits to it.
"""

from collections.abc import Mapping
from math import ceil

from allauth.account.models import EmailAddress
from axes.helpers import get_client_username, get_cool_off
from axes.models import AccessAttempt
from django.db.models import Max, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone


def name_account(request: HttpRequest, credentials: Mapping[str, object] | None) -> str:
    """Return the account that a sign-in is about, by which failures are counted.

    One account has many spellings: an address in any mixture of capitals, and the name.
    """
    fields = credentials if credentials else request.POST
    typed = str(fields.get("username") or "").replace("\0", "")
    if "@" not in typed:
        return typed
    addresses = EmailAddress.objects.filter(email__iexact=typed, verified=True)
    name: str | None = addresses.values_list("user__username", flat=True).first()
    return name or typed.lower()


def refuse_sign_in(
    request: HttpRequest, response: HttpResponse | None, credentials: Mapping[str, object] | None
) -> HttpResponse:
    """Answer a sign-in that is not even tried, and say how long to wait."""
    seconds = _count_seconds_left(request, credentials)
    page = render(
        request,
        "chatcore/sign_in_paused.html",
        {"minutes": ceil(seconds / 60), "path": request.path},
        status=429,
    )
    page.headers["Retry-After"] = str(seconds)
    page.headers["Cache-Control"] = "no-store"
    return page


def describe_client(
    username: str, ip_address: str, user_agent: str, path_info: str, request: HttpRequest
) -> str:
    """Name a client in the log: its address. The name that was typed may be a password."""
    return f"{ip_address} at {path_info}"


def _count_seconds_left(request: HttpRequest, credentials: Mapping[str, object] | None) -> int:
    counted_together = Q(username=get_client_username(request, credentials)) | Q(
        ip_address=request.axes_ip_address  # type: ignore[attr-defined]
    )
    attempts = AccessAttempt.objects.filter(counted_together)
    last_time = attempts.aggregate(time=Max("attempt_time"))["time"] or timezone.now()
    pause = get_cool_off(request)
    seconds = (last_time + pause - timezone.now()).total_seconds() if pause else 0
    return max(1, ceil(seconds))
