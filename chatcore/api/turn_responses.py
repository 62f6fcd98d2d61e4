"""What a turn came to, whichever way the client wants to wait for it: at its end, as a stream, or by following the events."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api import event_streams
from chatcore.api.serializers import AnswerSerializer, StartedTurnSerializer
from chatcore.files import intake
from chatcore.models import Message, Session, Turn
from chatcore.rest.auth import build_api_path
from chatcore.rest.problems import InvalidFieldError, Problem
from chatcore.turns import client_tools, leases, service, versions

MAX_IDEMPOTENCY_KEY_CHARS = 255
IDEMPOTENCY_KEY_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY_CHARS}
PREFER_PARAMETER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`respond-async`: 202 at once; follow the events.",
)
TURN_PARAMETERS = [
    OpenApiParameter(
        "Idempotency-Key",
        IDEMPOTENCY_KEY_SCHEMA,
        OpenApiParameter.HEADER,
        description="The same key gives the same turn.",
    ),
    PREFER_PARAMETER,
]
TURN_RESPONSES: dict[Any, Any] = {
    (200, event_streams.MEDIA_TYPE): event_streams.STREAM_RESPONSE,
    201: AnswerSerializer,
    202: StartedTurnSerializer,
    409: OpenApiResponse(
        description="A turn is running or waiting, or the message was superseded, or there is no language model."
    ),
    413: OpenApiResponse(description="The message or the body is too long."),
    502: OpenApiResponse(description="The provider failed."),
    503: OpenApiResponse(description="The provider is throttling."),
    504: OpenApiResponse(description="The provider did not answer in time."),
}
NEW_TURN_RESPONSES: dict[Any, Any] = TURN_RESPONSES | {
    422: OpenApiResponse(description="The key was used with another payload."),
    429: OpenApiResponse(description="Too many turns."),
}


def respond_with_turn(
    request: Request, turn: Turn, *, stream: bool = False, after_seq: int | None = None
) -> HttpResponseBase:
    """The turn's events after `after`, or where to follow them, or its end, waited for; as the request asks."""
    after_seq = turn.first_event_seq - 1 if after_seq is None else after_seq
    if stream or event_streams.MEDIA_TYPE in request.headers.get("Accept", ""):
        return event_streams.stream_events(request, turn.session_id, after_seq, turn=turn)
    if _prefers_async(request):
        return Response(
            _describe_started_turn(request, turn, after_seq),
            status=202,
            headers={"Preference-Applied": "respond-async"},
        )
    return build_turn_response(service.wait_for_turn(turn.pk))


def build_turn_response(turn: Turn) -> Response:
    """What a turn that has ended, or waits, came to. Raises the provider's problem when it failed; the user's message is stored."""
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        raise _build_turn_problem(turn)
    messages = list(
        turn.messages.exclude(role=Message.Role.USER)
        .prefetch_related("attachments")
        .order_by("seq")
    )
    assistant_messages = [message for message in messages if message.role == Message.Role.ASSISTANT]
    body = {
        "turn": turn.pk,
        "status": turn.status,
        "user_message": turn.question,
        "assistant_message": assistant_messages[-1] if assistant_messages else None,
        "tool_messages": [message for message in messages if message.role == Message.Role.TOOL],
        "requires_action": client_tools.find_pending_calls(turn)
        if turn.status == Turn.Status.WAITING
        else [],
        "notices": turn.notices,
    }
    serializer = AnswerSerializer(
        body, context={"versions": versions.map_message_versions(turn.session_id)}
    )
    return Response(serializer.data, status=201)


def build_message_context(session: Session) -> dict[str, Any]:
    """What a message's serializer has to know of its session."""
    return {
        "boundary": session.compact_boundary_seq,
        "versions": versions.map_message_versions(session.pk),
    }


@contextmanager
def translate_turn_errors() -> Iterator[None]:
    """Inside, whatever the turns refuse is a problem by its name."""
    try:
        yield
    except leases.TurnRunning as running_turn:
        kind, detail = (
            ("turn_waiting", "waiting for results of tools")
            if running_turn.is_waiting
            else ("turn_running", "still answering")
        )
        raise Problem(
            409,
            kind,
            f"The session is {detail}.",
            turn=str(running_turn.turn_id),
            repeated=running_turn.is_repeat,
        ) from None
    except service.IdempotencyConflict as error:
        raise Problem(422, "idempotency_key_reused", str(error)) from None
    except service.NoModel as error:
        raise Problem(409, "no_model", str(error)) from None
    except service.NoWaitingTurn as error:
        raise Problem(409, "nothing_waits", str(error)) from None
    except versions.MessageSuperseded as error:
        raise Problem(409, "superseded", str(error)) from None
    except versions.NoQuestionToAnswer as error:
        raise Problem(409, "nothing_to_answer", str(error)) from None
    except intake.FileUnavailable as error:
        raise InvalidFieldError(f"attachments[{error.position}]", str(error)) from None
    except (client_tools.InvalidClientTools, client_tools.InvalidToolResult) as error:
        raise InvalidFieldError(error.field, error.detail) from None


def build_idempotency_fields(
    request: Request, action: str, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """The idempotency key, if there is one, and what tells one payload from another; how it is answered is no part of it."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= MAX_IDEMPOTENCY_KEY_CHARS:
        raise InvalidFieldError("Idempotency-Key", f"1 to {MAX_IDEMPOTENCY_KEY_CHARS} characters.")
    hashed_payload = {"act": action} | {
        name: value for name, value in payload.items() if name != "stream"
    }
    return {
        "idempotency_key": key,
        "payload_hash": hashlib.sha256(
            json.dumps(hashed_payload, sort_keys=True, default=str).encode()
        ).hexdigest(),
    }


def _build_turn_problem(turn: Turn) -> Problem:
    error = turn.error or {}
    status = error.get("status", HTTPStatus.BAD_GATEWAY)
    detail = error.get("detail", "The turn failed.")
    kind, retry_after = error.get("type", "turn_failed"), error.get("retry_after")
    return Problem(
        status,
        kind,
        detail,
        retry_after=retry_after,
        turn=str(turn.pk),
        user_message=turn.question_id,
    )


def _describe_started_turn(request: Request, turn: Turn, after_seq: int) -> dict[str, Any]:
    return {
        "turn": turn.pk,
        "session": turn.session_id,
        "user_message": turn.question_id,
        "events": request.build_absolute_uri(
            build_api_path(request, f"sessions/{turn.session_id}/events?after={after_seq}")
        ),
    }


def _prefers_async(request: Request) -> bool:
    preferences = request.headers.get("Prefer", "").lower().split(",")
    return "respond-async" in {preference.partition(";")[0].strip() for preference in preferences}
