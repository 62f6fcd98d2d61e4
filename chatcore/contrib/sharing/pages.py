"""Make and revoke links to one's chats: the dialog of a chat, and the list in the settings."""

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from chatcore.base.keeping import Kept
from chatcore.contrib.sharing import links
from chatcore.contrib.sharing.models import ShareQuerySet
from chatcore.models import Session
from chatcore.web.own_chat import get_own_chat, use_local_time

MAX_LISTED = 100
DAYS = ("", "7", "30", "365")  # the choices of how long a link works; empty: until it is revoked


class ShareForm(forms.Form):
    """What a link shows besides the messages, and how long."""

    with_tools = forms.BooleanField(required=False)
    with_files = forms.BooleanField(required=False)
    days = forms.ChoiceField(choices=[(days, days) for days in DAYS], required=False)


def list_links(request: HttpRequest) -> ShareQuerySet:
    """Return the user's newest links, with their sessions."""
    return links.list_shares(request.user.pk).select_related("session")[:MAX_LISTED]


@login_required
@require_GET
@use_local_time
def show_share_dialog(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the dialog that makes a link to a chat, and those that there are."""
    return _render_dialog(request, get_own_chat(request, pk))


@login_required
@require_POST
@use_local_time
def create_link(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Make a link and show it, this once."""
    session = get_own_chat(request, pk)
    form = ShareForm(request.POST)
    if not form.is_valid():
        raise Http404  # the page has no other choices
    choices = form.cleaned_data
    days = int(choices.pop("days") or 0)
    try:
        _share, token = links.create_share(session, **choices, days=days or None)
    except Session.DoesNotExist:
        raise Http404 from None
    except (links.SharingRefused, Kept) as refusal:
        return _render_dialog(request, session, {"refusal": _describe(refusal)})
    return _render_dialog(request, session, {"link": build_link(request, token)})


@login_required
@require_POST
def revoke_link(request: HttpRequest, pk: UUID) -> HttpResponse:
    """End a link; its row leaves the list."""
    if not links.revoke_shares(request.user.pk, pk=pk):
        raise Http404
    return HttpResponse()


def build_link(request: HttpRequest, token: str) -> str:
    """Return the whole address of a link."""
    path = reverse("shared_chat", args=[token])
    if settings.PUBLIC_URL:
        return f"{settings.PUBLIC_URL}{path}"
    return request.build_absolute_uri(path)


def _describe(refusal: links.SharingRefused | Kept) -> str:
    """Return in the user's language why a chat is not shared."""
    if isinstance(refusal, Kept):
        return gettext("Your chats are kept for legal reasons and cannot be shared now.")
    if isinstance(refusal, links.TooManyShares):
        count = number_format(links.MAX_SHARES, force_grouping=True)
        return gettext("There are already %(count)s links, the most. Revoke some.") % {
            "count": count
        }
    # The other refusals are sentences of the dialog itself, so the catalogs have them.
    return gettext(str(refusal))


def _render_dialog(
    request: HttpRequest, session: Session, values: dict[str, Any] | None = None
) -> HttpResponse:
    own_links = links.list_shares(request.user.pk).filter(session=session)
    context = {
        "chat": session,
        "links": own_links.select_related("session")[:MAX_LISTED],
        "is_allowed": links.is_sharing_allowed(),
    }
    return render(request, "sharing/_dialog.html", context | (values or {}))
