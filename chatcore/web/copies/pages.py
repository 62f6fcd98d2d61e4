"""A page with many messages, sent while it is read from the database."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from chatcore.events.long_responses import hand_over_stream
from chatcore.transfer.transcript import TranscriptEntry, stream_texts

# Where the messages belong. A title with these characters in it is escaped.
GAP = "<!-- messages -->"


def stream_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
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
