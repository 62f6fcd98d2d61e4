"""Event streams: a session's events as Server-Sent Events."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import close_old_connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from chatcore.api.long_responses import hand_over_stream
from chatcore.api.ownership import get_owned_session
from chatcore.base.metrics import counts
from chatcore.base.rest.problems import InvalidFieldError, Problem
from chatcore.base.slots import ProcessFull, Slot, Slots, UserFull
from chatcore.events import retention
from chatcore.events.hub import event_hub
from chatcore.events.sse import format_frame, stream_frames
from chatcore.events.types import Event, EventsDroppedPayload, EventType
from chatcore.models import Message, Turn
from chatcore.turns import lifecycle

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
STREAM_RETRY_SECONDS = 30
HANDOVER_RETRY_SECONDS = 1
MAX_SEQ = 2**63 - 1
FRAME_SCHEMA = {
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
# Streams that follow a session. One that begins with a turn ends with it, and is bounded as turns
# are (chatcore/turns/capacity.py).
_stream_slots = Slots()
# OpenAPI 3.2 has a word for what the frames of a stream are, 3.1 has not. So some readers take the
# schema for that of the whole text and some for that of a frame, and it names no type.
STREAM_SCHEMA = {
    "description": "Server-Sent Events: frames of `id`, `event` and `data`.",
    "x-itemSchema": FRAME_SCHEMA,
}
STREAM_RESPONSE = OpenApiResponse(
    response=STREAM_SCHEMA, description="Server-Sent Events; those of a turn end with it."
)


def stream_events(
    request: Request, session_id: UUID, after_seq: int, *, turn: Turn | None = None
) -> HttpResponseBase:
    """Return a stream of the session's events after the event `after_seq`.

    With `turn` the stream ends when that turn ends or waits for its client. If its events are too
    old to be kept, only its end is sent.
    """
    if turn and turn.status not in Turn.OPEN_STATUSES and not retention.has_events_of(turn):
        return _send_frames(request, _stream_frame(_rebuild_end_event(turn)))
    turn_id = turn.pk if turn else None
    return _send_frames(request, stream_frames(session_id, after_seq, turn_id=turn_id))


def _send_frames(
    request: Request, frames: AsyncIterator[bytes], slot: Slot | None = None
) -> HttpResponseBase:
    """Return the stream, and release the slot when it has ended."""
    # A stream may be open for hours. It opens connections for its own reads, so this thread must
    # give its connection back now.
    close_old_connections()
    return hand_over_stream(
        request,
        frames,
        content_type=MEDIA_TYPE,
        headers=HEADERS,
        on_end=partial(_end_stream, slot) if slot else None,
    )


def _end_stream(slot: Slot) -> None:
    slot.release()
    counts.count_streams(_stream_slots.count())


def take_slot(request: Request) -> Slot:
    """Take a place for a stream that may be open for hours. Raises the 429 or 503 problem."""
    user_limit = settings.CHATCORE["STREAMS_AT_ONCE_PER_USER"]
    if event_hub.is_handing_over:
        detail = "This process of the server is about to stop. Follow the events at another one."
        raise Problem(503, "overloaded", detail, retry_after=HANDOVER_RETRY_SECONDS)
    try:
        slot = _stream_slots.take(
            request.user.pk,
            process_limit=settings.CHATCORE["STREAMS_AT_ONCE"],
            user_limit=user_limit,
        )
    except UserFull:
        detail = f"You have {user_limit} event streams open, and no more are allowed at once."
        raise Problem(429, "too_many_streams", detail, retry_after=STREAM_RETRY_SECONDS) from None
    except ProcessFull:
        detail = "The server has as many event streams open as it can."
        raise Problem(503, "overloaded", detail, retry_after=STREAM_RETRY_SECONDS) from None
    counts.count_streams(_stream_slots.count())
    return slot


async def _stream_frame(event: Event) -> AsyncGenerator[bytes]:
    yield format_frame(event)


async def _stream_after_dropped(session_id: UUID, until_seq: int) -> AsyncGenerator[bytes]:
    """Yield `events.dropped`, and then the session's events, of which none is missing."""
    event = Event(
        session=session_id,
        seq=until_seq,
        name=EventType.EVENTS_DROPPED,
        data={**EventsDroppedPayload(until=until_seq)},
        at=timezone.now(),
    )
    yield format_frame(event)
    async with aclosing(stream_frames(session_id, until_seq)) as frames:
        async for frame in frames:
            yield frame


def _rebuild_end_event(turn: Turn) -> Event:
    """Return the event that ended the turn, with the number of the last one that is not kept."""
    answers = turn.messages.filter(role=Message.Role.ASSISTANT).order_by("-seq")
    is_completed = turn.status == Turn.Status.COMPLETED
    answer = answers.only("left_out_count").first() if is_completed else None
    name, payload = lifecycle.build_end_event(turn, answer=answer)
    first_seq = turn.first_event_seq
    return Event(
        session=turn.session_id,
        seq=retention.find_dropped_seq(turn.session, first_seq - 1) or first_seq,
        name=name,
        data={**payload},
        at=turn.finished_at or turn.started_at,
    )


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
        responses={
            (200, MEDIA_TYPE): STREAM_RESPONSE,
            429: OpenApiResponse(description="Too many event streams of the user are open."),
        },
    )
    def get(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Follow all events after a given one, stored and future; by default only future ones.

        Events are kept for some days (`CHATCORE_EVENT_RETENTION_DAYS`), those of an open turn as
        long as it is open. When some that follow the given one are gone, the stream begins with
        `events.dropped` `{until}`: load the session and its messages again, and then apply the
        events that follow. Deltas are kept for an hour: later, `message.completed` comes without
        them, and the message has the text.
        """
        session = get_owned_session(request, session_id)
        after_seq = _parse_after_seq(request.headers, request.query_params)
        if after_seq is None:
            after_seq = session.last_event_seq
        dropped_seq = retention.find_dropped_seq(session, after_seq)
        if dropped_seq is None:
            frames = stream_frames(session.pk, after_seq)
        else:
            frames = _stream_after_dropped(session.pk, dropped_seq)
        return _send_frames(request, frames, take_slot(request))

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
