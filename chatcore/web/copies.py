"""Pages that show a whole chat, to be printed or read by others, sent while they are read."""

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET

from chatcore.api.long_responses import hand_over_stream
from chatcore.transfer.transcript import (
    TranscriptEntry,
    read_parts,
    select_current_messages,
    stream_texts,
)
from chatcore.web.own_chat import get_own_chat, use_local_time

# Where the messages belong. A title with these characters in it is escaped.
GAP = "<!-- messages -->"


def stream_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, object],
    parts: Iterable[list[TranscriptEntry]],
    headers: Mapping[str, str],
) -> HttpResponseBase:
    """Return a page whose messages are rendered and sent a part at a time."""
    page = render_to_string(template, {**context, "gap": GAP}, request)
    head, foot = page.split(GAP)

    def write() -> Iterator[str]:
        yield head
        for entries in parts:
            yield render_to_string(
                "chatcore/copies/_messages.html", {**context, "entries": entries}
            )
        yield foot

    return hand_over_stream(
        request, stream_texts(write()), content_type="text/html; charset=utf-8", headers=headers
    )


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
