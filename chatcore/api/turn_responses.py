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
from chatcore.rest.auth import address_of
from chatcore.rest.problems import Invalid, Problem
from chatcore.turns import client_tools, leases, service, versions

KEY_CHARS = 255
KEY = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS}
PREFER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`respond-async`: 202 at once; follow the events.",
)
PARAMETERS = [
    OpenApiParameter(
        "Idempotency-Key",
        KEY,
        OpenApiParameter.HEADER,
        description="The same key gives the same turn.",
    ),
    PREFER,
]
RESPONSES: dict[Any, Any] = {
    (200, event_streams.MEDIA_TYPE): event_streams.STREAM,
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
NEW_TURN: dict[Any, Any] = RESPONSES | {
    422: OpenApiResponse(description="The key was used with another payload."),
    429: OpenApiResponse(description="Too many turns."),
}


def respond(
    request: Request, turn: Turn, *, stream: bool = False, after: int | None = None
) -> HttpResponseBase:
    """The turn's events after `after`, or where to follow them, or its end, waited for; as the request asks."""
    after = turn.first_event_seq - 1 if after is None else after
    if stream or event_streams.MEDIA_TYPE in request.headers.get("Accept", ""):
        return event_streams.stream(request, turn.session_id, after, turn=turn)
    if _prefers_async(request):
        return Response(
            _followed(request, turn, after),
            status=202,
            headers={"Preference-Applied": "respond-async"},
        )
    return answer(service.wait(turn.pk))


def answer(turn: Turn) -> Response:
    """What a turn that has ended, or waits, came to. Raises the provider's problem when it failed; the user's message is stored."""
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        raise _failure(turn)
    messages = list(
        turn.messages.exclude(role=Message.Role.USER)
        .prefetch_related("attachments")
        .order_by("seq")
    )
    spoken = [message for message in messages if message.role == Message.Role.ASSISTANT]
    body = {
        "turn": turn.pk,
        "status": turn.status,
        "user_message": turn.question,
        "assistant_message": spoken[-1] if spoken else None,
        "tool_messages": [message for message in messages if message.role == Message.Role.TOOL],
        "requires_action": client_tools.pending(turn) if turn.status == Turn.Status.WAITING else [],
        "notices": turn.notices,
    }
    shown = AnswerSerializer(body, context={"versions": versions.places(turn.session_id)})
    return Response(shown.data, status=201)


def shown(session: Session) -> dict[str, Any]:
    """What a message's serializer has to know of its session."""
    return {"boundary": session.compact_boundary_seq, "versions": versions.places(session.pk)}


@contextmanager
def refusals() -> Iterator[None]:
    """Inside, whatever the turns refuse is a problem by its name."""
    try:
        yield
    except leases.TurnRunning as open_turn:
        kind, detail = (
            ("turn_waiting", "waiting for results of tools")
            if open_turn.waiting
            else ("turn_running", "still answering")
        )
        raise Problem(
            409,
            kind,
            f"The session is {detail}.",
            turn=str(open_turn.turn_id),
            repeated=open_turn.repeated,
        ) from None
    except service.IdempotencyConflict as conflict:
        raise Problem(422, "idempotency_key_reused", str(conflict)) from None
    except service.NoModel as missing:
        raise Problem(409, "no_model", str(missing)) from None
    except service.NothingWaits as nothing:
        raise Problem(409, "nothing_waits", str(nothing)) from None
    except versions.Superseded as superseded:
        raise Problem(409, "superseded", str(superseded)) from None
    except versions.NothingToAnswer as nothing:
        raise Problem(409, "nothing_to_answer", str(nothing)) from None
    except intake.Unavailable as missing:
        raise Invalid(f"attachments[{missing.position}]", str(missing)) from None
    except (client_tools.ToolsRefused, client_tools.ResultRefused) as wrong:
        raise Invalid(wrong.field, wrong.detail) from None


def keyed(request: Request, act: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The idempotency key, if there is one, and what tells one payload from another; how it is answered is no part of it."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= KEY_CHARS:
        raise Invalid("Idempotency-Key", f"1 to {KEY_CHARS} characters.")
    told = {"act": act} | {name: value for name, value in payload.items() if name != "stream"}
    return {
        "idempotency_key": key,
        "payload_hash": hashlib.sha256(
            json.dumps(told, sort_keys=True, default=str).encode()
        ).hexdigest(),
    }


def _failure(turn: Turn) -> Problem:
    error = turn.error or {}
    status = error.get("status", HTTPStatus.BAD_GATEWAY)
    detail = error.get("detail", "The turn failed.")
    kind, wait = error.get("type", "turn_failed"), error.get("retry_after")
    return Problem(
        status, kind, detail, retry_after=wait, turn=str(turn.pk), user_message=turn.question_id
    )


def _followed(request: Request, turn: Turn, after: int) -> dict[str, Any]:
    return {
        "turn": turn.pk,
        "session": turn.session_id,
        "user_message": turn.question_id,
        "events": request.build_absolute_uri(
            address_of(request, f"sessions/{turn.session_id}/events?after={after}")
        ),
    }


def _prefers_async(request: Request) -> bool:
    wishes = request.headers.get("Prefer", "").lower().split(",")
    return "respond-async" in {wish.partition(";")[0].strip() for wish in wishes}
