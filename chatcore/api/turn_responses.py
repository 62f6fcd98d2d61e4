"""Responses to requests that start a turn: its result, its events, or where to follow them."""

from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.models import Exists, OuterRef, Q
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api import event_streams, idempotency
from chatcore.api.errors import build_turn_problem
from chatcore.api.serializers.turns import AnswerSerializer, StartedTurnSerializer
from chatcore.base.databases.outages import find_outage
from chatcore.base.rest.problems import Problem
from chatcore.base.rest.routes import build_api_path
from chatcore.models import Message, Turn
from chatcore.turns import control, versions, waiting

TURN_RESPONSES: dict[Any, Any] = {
    (200, event_streams.MEDIA_TYPE): event_streams.STREAM_RESPONSE,
    201: AnswerSerializer,
    202: StartedTurnSerializer,
    409: OpenApiResponse(
        description=(
            "A turn is running or waiting, or the message was superseded, "
            "or there is no language model."
        )
    ),
    413: OpenApiResponse(description="The message or the body is too long."),
    429: OpenApiResponse(description="Too many turns of the user, at once or in a minute."),
    502: OpenApiResponse(description="The provider failed."),
    503: OpenApiResponse(
        description=(
            "The server is overloaded, or its database is away or busy, and nothing was stored; "
            "or the provider limits the number of requests. See Retry-After."
        )
    ),
    504: OpenApiResponse(description="The provider did not answer in time."),
}
ANSWER_GOES_ON = "The message is stored and is being answered: do not send it again, read it later."
NEW_TURN_RESPONSES: dict[Any, Any] = TURN_RESPONSES | {
    422: idempotency.CONFLICT_RESPONSE,
}


def respond_with_turn(
    request: Request, turn: Turn, *, stream: bool = False, after_seq: int | None = None
) -> HttpResponseBase:
    """Return the turn in the form that the request asks for.

    As a stream: its events after the event `after_seq`, by default all. With
    `Prefer: respond-async`: 202 with the URL of its events. Otherwise wait for its end.
    """
    response = _build_response(request, turn, stream=stream, after_seq=after_seq)
    if turn.is_repeat:
        response[idempotency.REPLAYED_HEADER] = "true"
    return response


def _build_response(
    request: Request, turn: Turn, *, stream: bool, after_seq: int | None
) -> HttpResponseBase:
    if after_seq is None:
        after_seq = turn.first_event_seq - 1
    if stream or event_streams.MEDIA_TYPE in request.headers.get("Accept", ""):
        return event_streams.stream_events(request, turn.session_id, after_seq, turn=turn)
    if _prefers_async(request):
        return Response(
            _describe_started_turn(request, turn, after_seq),
            status=202,
            headers={"Preference-Applied": "respond-async"},
        )
    return build_turn_response(wait_for_end(turn))


def wait_for_end(turn: Turn) -> Turn:
    """Wait until the turn has ended or waits for its client.

    Raises the problem that says what is stored if the database goes away meanwhile.
    """
    try:
        return control.wait_for_turn(turn.pk)
    except (DatabaseError, InterfaceError) as error:
        outage = find_outage(error)
        if outage is None:
            raise
        raise Problem(
            outage.status,
            outage.type,
            f"{outage.detail} {ANSWER_GOES_ON}",
            retry_after=outage.retry_after,
            turn=str(turn.pk),
            user_message=turn.question_id,
        ) from error


def build_turn_response(turn: Turn) -> Response:
    """Return the result of a turn that has ended or waits. Raises its problem if it failed."""
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        raise build_turn_problem(turn)
    # Another answer has its question in an earlier turn.
    rows = Message.objects.filter(Q(turn=turn) | Q(pk=turn.question_id))
    replacements = Message.objects.filter(replaces=OuterRef("pk"))
    messages = list(
        rows.annotate(is_replaced=Exists(replacements))
        .prefetch_related("attachments")
        .order_by("seq")
    )
    assistant_messages = [message for message in messages if message.role == Message.Role.ASSISTANT]
    is_waiting = turn.status == Turn.Status.WAITING
    open_calls = waiting.find_open_calls(turn) if is_waiting else waiting.OpenCalls()
    body = {
        "turn": turn.pk,
        "status": turn.status,
        "user_message": next((row for row in messages if row.pk == turn.question_id), None),
        "assistant_message": assistant_messages[-1] if assistant_messages else None,
        "tool_messages": [message for message in messages if message.role == Message.Role.TOOL],
        "requires_action": open_calls.client_calls,
        "approvals": waiting.build_approval_requests(turn, open_calls.undecided_calls),
        "notices": turn.list_new_notices(),
    }
    # Few messages are versions of each other. Which are is asked of the whole session.
    has_versions = any(
        message.replaces_id or message.is_replaced  # type: ignore[attr-defined]  # annotated
        for message in messages
    )
    context = {"versions": versions.map_message_versions(turn.session_id) if has_versions else {}}
    return Response(AnswerSerializer(body, context=context).data, status=201)


def _describe_started_turn(request: Request, turn: Turn, after_seq: int) -> dict[str, object]:
    events_path = build_api_path(request, f"sessions/{turn.session_id}/events?after={after_seq}")
    return {
        "turn": turn.pk,
        "session": turn.session_id,
        "user_message": turn.question_id,
        "events": request.build_absolute_uri(events_path),
    }


def _prefers_async(request: Request) -> bool:
    preferences = request.headers.get("Prefer", "").lower().split(",")
    return "respond-async" in {preference.partition(";")[0].strip() for preference in preferences}
