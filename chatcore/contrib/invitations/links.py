"""Make, accept and use up the links of invitations."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from chatcore.contrib.invitations.models import Invitation

SESSION_KEY = "chatcore_invitation"
DEFAULT_DAYS = 7
MAX_DAYS = 90


def select_givable_groups(person: Any) -> QuerySet[Group]:
    """Select the groups that a person may give to others.

    Those are their own: others would give rights that the person has not. Who may change groups
    could take any of them anyway.
    """
    if not person.is_active:
        return Group.objects.none()
    if person.has_perm("auth.change_group"):
        return Group.objects.all()
    return Group.objects.filter(user=person.pk)


def create_invitation(
    *, made_by: Any, note: str = "", days: int = DEFAULT_DAYS, groups: Iterable[Group] = ()
) -> tuple[Invitation, str]:
    """Make an invitation; return its row and the path of its link, which is not stored."""
    token = secrets.token_urlsafe(24)
    with transaction.atomic():
        invitation = Invitation.objects.create(
            digest=_digest(token),
            made_by=made_by,
            note=note,
            expires_at=timezone.now() + timedelta(days=days),
        )
        invitation.groups.set(groups)
    return invitation, reverse("invitation", args=[token])


def accept(request: HttpRequest, token: str) -> bool:
    """Remember in the browser's session that it was invited; return whether the link works."""
    invitation = Invitation.objects.filter_open().filter(digest=_digest(token)).first()
    if invitation is None:
        return False
    request.session[SESSION_KEY] = invitation.pk
    return True


def find_in(request: HttpRequest) -> Invitation | None:
    """Return the invitation that this browser has come with, if it still works."""
    pk = request.session.get(SESSION_KEY)
    return Invitation.objects.filter_open().filter(pk=pk).first() if pk else None


def redeem(request: HttpRequest, user: Any) -> None:
    """Use up the browser's invitation for a new user, who joins its groups.

    Of these only the ones that its maker may still give; one that was made by a command gives all.
    It belongs into the transaction that stores the user. Of two who use one link at once, the
    second is refused, and nothing of its account is stored.
    """
    pk = request.session.pop(SESSION_KEY, None)
    if pk is None:
        return
    open_row = Invitation.objects.filter_open().filter(pk=pk)
    if not open_row.update(used_at=timezone.now(), used_by=user):
        raise ImmediateHttpResponse(render(request, "invitations/used.html", status=410))
    invitation = Invitation.objects.select_related("made_by").get(pk=pk)
    groups = invitation.groups.all()
    if invitation.made_by:
        groups = groups & select_givable_groups(invitation.made_by)
    user.groups.add(*groups)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
