"""Event streams: a session's events as Server-Sent Events."""

from collections.abc import Mapping
from uuid import UUID

from django.db import close_old_connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from chatcore.api.ownership import get_owned_session
from chatcore.events.long_responses import hand_over_stream
from chatcore.events.sse import stream_frames
from chatcore.models import Turn
from chatcore.rest.problems import InvalidFieldError

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
MAX_SEQ = 2**63 - 1
EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {
            "type": "string",
            "pattern": "^[0-9]+$",
            "description": "The number of the event in the log, for `Last-Event-ID`.",
        },
        "event": {"type": "string"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "description": "An object with `session`, `seq`, `at` and the event's own fields.",
        },
    },
    "required": ["id", "event", "data"],
}
STREAM_RESPONSE = OpenApiResponse(
    response=EVENT_SCHEMA, description="Server-Sent Events, each of this form."
)


def stream_events(
    request: Request, session_id: UUID, after_seq: int, *, turn: Turn | None = None
) -> HttpResponseBase:
    """Return a stream of the session's events after the event `after_seq`.

    With `turn` the stream ends when that turn ends or waits for its client.
    """
    # A stream may be open for hours. It opens connections for its own reads, so this thread must
    # give its connection back now.
    close_old_connections()
    body = stream_frames(session_id, after_seq, turn_id=turn.pk if turn else None)
    return hand_over_stream(request._request, body, content_type=MEDIA_TYPE, headers=HEADERS)


class EventStreamView(APIView):
    """A session's event log."""

    @extend_schema(
        operation_id="follow_events",
        parameters=[
            OpenApiParameter(
                "after", int, description="Begin after the event of this id; 0 is the whole log."
            ),
            OpenApiParameter(
                "Last-Event-ID",
                int,
                OpenApiParameter.HEADER,
                description="The same in the header that EventSource sends; used if both are sent.",
            ),
        ],
        responses={(200, MEDIA_TYPE): STREAM_RESPONSE},
    )
    def get(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Follow all events after a given one, stored and future; by default only future ones."""
        session = get_owned_session(request, session_id)
        after_seq = _parse_after_seq(request.headers, request.query_params)
        if after_seq is None:
            after_seq = session.last_event_seq
        return stream_events(request, session.pk, after_seq)

    def head(self, request: Request, session_id: UUID) -> HttpResponse:
        """Return the stream's headers."""
        # REST framework would answer HEAD with `get`, and the response would never end.
        get_owned_session(request, session_id)
        _parse_after_seq(request.headers, request.query_params)
        return HttpResponse(content_type=MEDIA_TYPE, headers=HEADERS)


def _parse_after_seq(headers: Mapping[str, str], query: Mapping[str, str]) -> int | None:
    """Return the number of the last event that the client has; None if it names none."""
    name = "Last-Event-ID"
    text = headers.get(name, "")
    # EventSource sends an empty header before it has received an event.
    if not text:
        name = "after"
        text = query.get(name, "")
    if not text:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= 19
    if not is_number or int(text) > MAX_SEQ:
        raise InvalidFieldError(name, "The id of an event, a whole number.")
    return int(text)
