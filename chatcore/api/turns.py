"""Turns: a user's message in, an answer out, whichever way the client wants to wait for it."""

import hashlib
import json
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore import turns
from chatcore.api import limits, streams
from chatcore.api.problems import Invalid, Problem
from chatcore.api.serializers import AnswerSerializer, CancelledSerializer, NewMessageSerializer, StartedTurnSerializer
from chatcore.api.sessions import owned
from chatcore.models import Message, Session, Turn

KEY_CHARS = 255
KEY = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS}


def post_message(request: Request, session_id: UUID) -> Response | StreamingHttpResponse:
    """Start a turn; wait for its end, stream it, or leave it to the client to follow."""
    session = owned(request, session_id)
    fields = NewMessageSerializer(data=request.data)
    fields.is_valid(raise_exception=True)
    key = _idempotency_key(request)
    limits.count_turn(request)
    turn = _started(session, fields.validated_data["content"], key)
    if fields.validated_data.get("stream") or streams.MEDIA_TYPE in request.headers.get("Accept", ""):
        return streams.stream(session.pk, turn.first_event_seq - 1, turn=turn)
    if _prefers_async(request):
        return Response(_followed(request, turn), status=202, headers={"Preference-Applied": "respond-async"})
    return answer(turns.wait(turn.pk))


MESSAGE_SCHEMA = extend_schema(
    operation_id="send_message",
    request=NewMessageSerializer,
    parameters=[
        OpenApiParameter("Idempotency-Key", KEY, OpenApiParameter.HEADER, description="The same key gives the same turn."),
        OpenApiParameter("Prefer", str, OpenApiParameter.HEADER, description="`respond-async`: 202 at once; follow the events."),
    ],
    responses={
        (200, streams.MEDIA_TYPE): streams.STREAM,
        201: AnswerSerializer,
        202: StartedTurnSerializer,
        409: OpenApiResponse(description="Another turn is running, the keyed one still is, or there is no language model."),
        413: OpenApiResponse(description="The message or the body is too long."),
        422: OpenApiResponse(description="The key was used with another payload."),
        429: OpenApiResponse(description="Too many turns."),
        502: OpenApiResponse(description="The provider failed."),
        503: OpenApiResponse(description="The provider is throttling."),
        504: OpenApiResponse(description="The provider did not answer in time."),
    },
)


class Cancel(APIView):
    """Stopping an answer."""

    @extend_schema(operation_id="cancel_turn", request=None, responses=CancelledSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Stop answering; what was said is kept as `interrupted`."""
        return Response({"cancelled": turns.cancel(owned(request, session_id).pk)})


def answer(turn: Turn) -> Response:
    """What a turn that has ended came to. Raises the provider's problem when it failed; the user's message is stored."""
    messages = list(turn.messages.prefetch_related("attachments").order_by("seq"))
    said = next(message for message in messages if message.role == Message.Role.USER)
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        raise _failure(turn, said)
    spoken = [message for message in messages if message.role == Message.Role.ASSISTANT]
    body = {
        "user_message": said,
        "assistant_message": spoken[-1] if spoken else None,
        "tool_messages": [message for message in messages if message.role == Message.Role.TOOL],
        "notices": turn.notices,
    }
    return Response(AnswerSerializer(body).data, status=201)


def _failure(turn: Turn, said: Message) -> Problem:
    error = turn.error or {}
    status = error.get("status", HTTPStatus.BAD_GATEWAY)
    detail = error.get("detail", "The turn failed.")
    return Problem(
        status, error.get("type", "turn_failed"), detail, retry_after=error.get("retry_after"), turn=str(turn.pk), user_message=said.pk
    )


def _started(session: Session, content: str, key: str | None) -> Turn:
    payload = hashlib.sha256(json.dumps({"content": content}).encode()).hexdigest()
    try:
        return turns.start(session, content=content, idempotency_key=key, payload_hash=payload)
    except turns.TurnRunning as running:
        raise Problem(409, "turn_running", "The session is still answering.", turn=str(running.turn_id)) from None
    except turns.IdempotencyConflict as conflict:
        raise Problem(422, "idempotency_key_reused", str(conflict)) from None
    except turns.NoModel as missing:
        raise Problem(409, "no_model", str(missing)) from None


def _followed(request: Request, turn: Turn) -> dict[str, Any]:
    said = turn.messages.get(role=Message.Role.USER)
    address = request.path.rstrip("/").removesuffix("/messages")
    return {
        "turn": str(turn.pk),
        "session": str(turn.session_id),
        "user_message": said.pk,
        "events": request.build_absolute_uri(f"{address}/events?after={turn.first_event_seq - 1}"),
    }


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= KEY_CHARS:
        raise Invalid("Idempotency-Key", f"1 to {KEY_CHARS} characters.")
    return key


def _prefers_async(request: Request) -> bool:
    wishes = request.headers.get("Prefer", "").lower().split(",")
    return "respond-async" in {wish.partition(";")[0].strip() for wish in wishes}
