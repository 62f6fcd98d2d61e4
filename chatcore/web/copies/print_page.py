"""The whole chat on one page, to be printed or saved as PDF."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_GET

from chatcore.transfer.transcript import read_parts, select_current_messages
from chatcore.web.chat import get_own_chat, use_local_time
from chatcore.web.copies.pages import stream_page


@login_required
@require_GET
@use_local_time
def show_print_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Show all messages of a chat as it is now, and a button that prints them."""
    session = get_own_chat(request, pk)
    boundary = session.compact_boundary_seq if session.compacted_summary else None
    messages = select_current_messages(session).exclude(role="system")
    context = {
        "session": session,
        # The summary stands before the first message that the model reads as it was written.
        "first_live": messages.filter(seq__gte=boundary or 0).order_by("seq").first(),
        "summary": session.compacted_summary if boundary is not None else "",
        "shows_tools": True,
        "shows_files": True,
        "files_at": f"{reverse('home')}api/v1/attachments/",
    }
    return stream_page(request, "chatcore/copies/print.html", context, read_parts(messages), {})
