"""Requests that start or continue a turn: their bodies, the key that makes them repeatable, and
their responses: the turn's result, its events, or where to follow them.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict

from django.core.validators import RegexValidator
from django.db import DatabaseError, InterfaceError
from django.db.models import Exists, OuterRef, Q
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api import event_streams, idempotency
from chatcore.api.errors import build_turn_problem
from chatcore.api.serializers.attachments import AttachmentField
from chatcore.api.serializers.messages import MessageSerializer, ToolCallSerializer
from chatcore.api.serializers.sessions import ModelNameField
from chatcore.api.serializers.turns import (
    STREAM_HELP_TEXT,
    AnswerSerializer,
    ApprovalRequestSerializer,
    StartedTurnSerializer,
)
from chatcore.api.uploads import AS_FILE
from chatcore.base.databases.outages import find_outage
from chatcore.base.rest import limits, turn_rate
from chatcore.base.rest.fields import (
    JsonObjectField,
    StrictBooleanField,
    StrictSerializer,
    StrictTextField,
    body_rules,
)
from chatcore.base.rest.problems import Problem
from chatcore.base.rest.routes import build_api_path
from chatcore.files import intake
from chatcore.models import Message, Session, Turn
from chatcore.providers.errors import ContextBudgetExceeded
from chatcore.turns import capacity, client_tools, control, versions, waiting

# A message has a text, or a file.
CONTENT_RULES = {
    "if": {"required": ["attachments"], "properties": {"attachments": {"minItems": 1}}},
    "else": {"required": ["content"], "properties": {"content": {"pattern": r"\S"}}},
}
PREFER_PARAMETER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`respond-async`: 202 at once; follow the events.",
)
TURN_PARAMETERS = [
    *idempotency.PARAMETERS,
    PREFER_PARAMETER,
]
TURN_RESPONSES: idempotency.Responses = {
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
NEW_TURN_RESPONSES: idempotency.Responses = TURN_RESPONSES | {
    422: idempotency.CONFLICT_RESPONSE,
}


class ToolDefinitionSerializer(StrictSerializer):
    """A tool that the client runs itself; `parameters` is the JSON schema of an object."""

    name = StrictTextField(
        max_length=64,
        validators=[
            RegexValidator(
                rf"^{client_tools.TOOL_NAME_PATTERN.pattern}$", "1 to 64 letters, digits, _ and -."
            )
        ],
    )
    description = StrictTextField(required=False, allow_blank=True)
    parameters = JsonObjectField(required=False)
    strict = serializers.BooleanField(required=False)


@body_rules(**CONTENT_RULES)
class NewMessageSerializer(StrictSerializer):
    """A user's message: text, files, or both."""

    content = StrictTextField(
        max_bytes=limits.MESSAGE_BYTES, way_out=AS_FILE, required=False, allow_blank=True
    )
    attachments = serializers.ListField(
        child=AttachmentField(), required=False, max_length=intake.MAX_FILES
    )
    tools = serializers.ListField(
        child=ToolDefinitionSerializer(), required=False, max_length=client_tools.MAX_TOOLS
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        """Refuse a message without text and files."""
        return _require_content(attrs)


@body_rules(**CONTENT_RULES)
class EditedMessageSerializer(StrictSerializer):
    """A new version of a message.

    Without `attachments` it keeps the files of the old version; with them, those whose ids are
    named.
    """

    content = StrictTextField(
        max_bytes=limits.MESSAGE_BYTES, way_out=AS_FILE, required=False, allow_blank=True
    )
    attachments = serializers.ListField(
        child=AttachmentField(), required=False, max_length=intake.MAX_FILES
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        """Refuse a message without text and files."""
        return _require_content(attrs)


class RegenerateSerializer(StrictSerializer):
    """Options of another answer."""

    model = ModelNameField(required=False)
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)


class ToolResultSerializer(StrictSerializer):
    """The result of a tool that the client ran."""

    tool_call_id = StrictTextField(max_length=255)
    content = StrictTextField(allow_blank=True)
    is_error = StrictBooleanField(required=False)


class ToolResultsSerializer(StrictSerializer):
    """Results of calls that wait for the client: all of them, or some."""

    results = serializers.ListField(
        child=ToolResultSerializer(), min_length=1, max_length=client_tools.MAX_TOOLS
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)


class IdempotencyFields(TypedDict):
    """What makes a request repeatable, as `control.start_turn` takes it."""

    idempotency_key: str | None
    payload_hash: str


def build_idempotency_fields(
    request: Request, action: str, payload: Mapping[str, object]
) -> IdempotencyFields:
    """Return the Idempotency-Key (None if there is none) and a hash of the payload.

    `stream` is not part of the hash: a client may repeat a request and want the answer in another
    form. Raises the 400 problem for a key of the wrong length.
    """
    key = idempotency.parse_key(request)
    hashed_payload = {"act": action, **payload}
    hashed_payload.pop("stream", None)
    text = json.dumps(hashed_payload, sort_keys=True, default=str)
    payload_hash = hashlib.sha256(text.encode()).hexdigest()
    return IdempotencyFields(idempotency_key=key, payload_hash=payload_hash)


@contextmanager
def reserve_and_count_turn(
    request: Request, session: Session, idempotency_key: str | None
) -> Iterator[None]:
    """Hold a place while a turn begins, and count it; a repeated request needs neither.

    Raises the 429 problem, and what `capacity.take_slot` raises.
    """
    with capacity.reserve_new_turn(session, idempotency_key) as is_new:
        if is_new:
            turn_rate.count_turn(request)
        yield


def _require_content(attrs: dict[str, Any]) -> dict[str, object]:
    """Return the fields with a text. Raises ValidationError without text and without files."""
    if not attrs.get("content", "").strip():
        if not attrs.get("attachments"):
            raise serializers.ValidationError({"content": ["The message has no text and no file."]})
        attrs["content"] = ""
    return attrs


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
        return control.wait_for_reply(turn)
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
        problem = build_turn_problem(turn)
        if problem.type == ContextBudgetExceeded.type:
            problem.detail = exceptions.ErrorDetail(f"{problem.detail} {AS_FILE}")
        raise problem
    messages = _load_messages(turn)
    # Few messages are versions of each other. Which are is asked of the whole session.
    has_versions = any(
        message.replaces_id or getattr(message, "is_replaced", False) for message in messages
    )
    context = {"versions": versions.map_message_versions(turn.session_id) if has_versions else {}}
    # By one serializer: to make the fields of one takes as long as a query.
    rows = MessageSerializer(messages, many=True, context=context).data
    answers = [row for row in rows if row["role"] == Message.Role.ASSISTANT]
    is_waiting = turn.status == Turn.Status.WAITING
    open_calls = waiting.find_open_calls(turn) if is_waiting else waiting.OpenCalls()
    approvals = waiting.build_approval_requests(turn, open_calls.undecided_calls)
    body = {
        "turn": turn.pk,
        "status": turn.status,
        "user_message": next((row for row in rows if row["id"] == turn.question_id), None),
        "assistant_message": answers[-1] if answers else None,
        "tool_messages": [row for row in rows if row["role"] == Message.Role.TOOL],
        "requires_action": ToolCallSerializer(open_calls.client_calls, many=True).data,
        "approvals": ApprovalRequestSerializer(approvals, many=True).data,
        "context_trimmed": bool(answers) and answers[-1]["context_trimmed"],
        "notices": turn.list_new_notices(),
    }
    return Response(body, status=201)


def _load_messages(turn: Turn) -> list[Message]:
    """Return the messages of a turn and its question, in order; those just stored as they are."""
    if turn.exchange and turn.exchange.answer:
        messages = [turn.exchange.question, turn.exchange.answer]
        for message in messages:  # as `prefetch_related` would, in a millisecond less
            message._prefetched_objects_cache = {"attachments": ()}  # type: ignore[attr-defined]  # noqa: SLF001
        return messages
    # Another answer has its question in an earlier turn.
    of_turn = Message.objects.filter(Q(turn=turn) | Q(pk=turn.question_id))
    replacements = Message.objects.filter(replaces=OuterRef("pk"))
    return list(
        of_turn.annotate(is_replaced=Exists(replacements))
        .prefetch_related("attachments")
        .order_by("seq")
    )


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
