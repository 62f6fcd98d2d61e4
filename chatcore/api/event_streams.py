"""Event streams over HTTP."""

from collections.abc import Mapping
from uuid import UUID

from django.db import close_old_connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from chatcore.api.sessions import get_owned_session
from chatcore.events.long_responses import hand_over_stream
from chatcore.events.sse import stream_frames
from chatcore.models import Turn
from chatcore.rest.problems import InvalidFieldError

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
MAX_SEQ = 2**63 - 1
_EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {
            "type": "string",
            "pattern": "^[0-9]+$",
            "description": "The place in the log, for `Last-Event-ID`.",
        },
        "event": {"type": "string"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "description": "With `session`, `seq` and `at`.",
        },
    },
    "required": ["id", "event", "data"],
}
STREAM_RESPONSE = OpenApiResponse(
    response=_EVENT_SCHEMA, description="Server-Sent Events, each of this shape."
)


def stream_events(
    request: Request, session_id: UUID, after_seq: int, *, turn: Turn | None = None
) -> HttpResponseBase:
    """The session's events after `after`, up to the turn's end if one is given."""
    close_old_connections()  # a stream may be open for hours, and its own reads bring their own connections
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
                description="The same, as EventSource sends it. It wins.",
            ),
        ],
        responses={(200, MEDIA_TYPE): STREAM_RESPONSE},
    )
    def get(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """All events after a given one, past and to come; without one, those from now on."""
        session = get_owned_session(request, session_id)
        after_seq = _parse_after_seq(request.headers, request.query_params)
        return stream_events(
            request, session.pk, session.last_event_seq if after_seq is None else after_seq
        )

    def head(self, request: Request, session_id: UUID) -> HttpResponse:
        """What the stream's headers would be. Its end is not waited for, or the connection's next request would be."""
        get_owned_session(request, session_id)
        _parse_after_seq(request.headers, request.query_params)
        return HttpResponse(content_type=MEDIA_TYPE, headers=HEADERS)


def _parse_after_seq(headers: Mapping[str, str], query: Mapping[str, str]) -> int | None:
    """The client's place in the log. An empty Last-Event-ID is what EventSource has before its first event."""
    name, text = "Last-Event-ID", headers.get("Last-Event-ID", "")
    if not text:
        name, text = "after", query.get("after", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > MAX_SEQ:
        raise InvalidFieldError(name, "The id of an event, a whole number.")
    return int(text)
