"""Pages of links to one's chats: where they are made and revoked, and what anybody sees by one."""

from itertools import chain
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.http import content_disposition_header
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST, require_safe

from chatcore.base.keeping import Kept
from chatcore.contrib.sharing import links
from chatcore.contrib.sharing.links import find_share
from chatcore.contrib.sharing.models import Share
from chatcore.files import output_store
from chatcore.models import Attachment, Session
from chatcore.transfer.transcript import read_parts
from chatcore.web.copies import stream_page
from chatcore.web.own_chat import get_own_chat, use_local_time

MAX_LISTED = 100
DAYS = ("", "7", "30", "365")  # the choices of how long a link works; empty: until it is revoked

# Nothing but the server's own styles, scripts and pictures; no form, no frame, no request.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
PRIVATE_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
FILE_HEADERS = PRIVATE_HEADERS | {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}


class ShareForm(forms.Form):
    """What a link shows besides the messages, and how long."""

    with_tools = forms.BooleanField(required=False)
    with_files = forms.BooleanField(required=False)
    days = forms.ChoiceField(choices=[(days, days) for days in DAYS], required=False)


def list_links(request: HttpRequest, **which: object) -> list[dict[str, object]]:
    """Return the user's newest links that the filters name: each row, and its whole address."""
    rows = links.list_shares(request.user.pk).filter(**which).select_related("session")
    return [
        {"share": row, "address": build_link(request, row.token) if row.token else ""}
        for row in rows[:MAX_LISTED]
    ]


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
    """Make a link and show it."""
    session = get_own_chat(request, pk)
    form = ShareForm(request.POST)
    if not form.is_valid():
        raise Http404  # the page has no other choices
    choices = form.cleaned_data
    days = int(choices.pop("days") or 0)
    try:
        share = links.create_share(session, **choices, days=days or None)
    except Session.DoesNotExist:
        raise Http404 from None
    except (links.SharingRefused, Kept) as refusal:
        return _render_dialog(request, session, {"refusal": _describe(refusal)})
    return _render_dialog(request, session, {"link": build_link(request, share.token)})


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
    request: HttpRequest, session: Session, values: dict[str, object] | None = None
) -> HttpResponse:
    context = {
        "chat": session,
        "links": list_links(request, session=session),
        "is_allowed": links.is_sharing_allowed(),
    }
    return render(request, "sharing/_dialog.html", context | (values or {}))


@require_safe
def show_shared_chat(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show the messages of a snapshot. Nobody has to sign in."""
    share = find_share(token)
    if share is None:
        page = render_to_string("sharing/over.html", request=request)
        return HttpResponse(page, status=404, headers=PRIVATE_HEADERS)
    context = {
        "session": share.session,
        "share": share,
        "files_at": f"{reverse('shared_chat', args=[token])}files/",
        "asker": gettext("Question"),
        # A title that has changed since may tell of later messages; a former one of deleted ones.
        "title": share.title if share.title == share.session.title else gettext("Shared chat"),
        "shows_tools": share.with_tools,
        "shows_files": share.with_files,
    }
    parts = chain.from_iterable(map(read_parts, share.select_messages()))
    return stream_page(request, "sharing/chat.html", context, parts, PRIVATE_HEADERS)


@require_safe
def download_shared_file(request: HttpRequest, token: str, pk: UUID) -> HttpResponse:
    """Return a file of a snapshot whose owner shares its files too."""
    share = find_share(token)
    if share is None or not share.with_files:
        raise Http404
    file = get_object_or_404(Attachment, pk=pk, session=share.session_id, kind="file")
    if not _is_shown(share, file):
        raise Http404
    try:
        content = output_store.fetch_bytes(file)
    except output_store.OutputLost:
        raise Http404 from None
    disposition = content_disposition_header(True, file.name) or "attachment"
    headers = FILE_HEADERS | {"Content-Disposition": disposition}
    return HttpResponse(content, content_type=file.media_type, headers=headers)


def _is_shown(share: Share, file: Attachment) -> bool:
    """Return whether the file's message is one of those that the link shows."""
    return any(messages.filter(attachments=file).exists() for messages in share.select_messages())
