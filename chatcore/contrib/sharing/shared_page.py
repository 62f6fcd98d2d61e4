"""What a link shows to anybody who has it: the messages of a snapshot, and nothing around them."""

from itertools import chain
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from chatcore.contrib.sharing.links import find_share
from chatcore.contrib.sharing.models import Share
from chatcore.files import output_store
from chatcore.models import Attachment
from chatcore.transfer.transcript import read_parts
from chatcore.web.copies import stream_page

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
