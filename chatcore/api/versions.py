"""Versions: an answer given anew, a message edited, an earlier version brought back."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.attachments import resolve_attachments
from chatcore.api.serializers import MessageSerializer
from chatcore.api.turn_requests import EditedMessageSerializer, RegenerateSerializer
from chatcore.api.turn_responses import (
    NEW_TURN_RESPONSES,
    TURN_PARAMETERS,
    build_idempotency_fields,
    build_message_context,
    respond_with_turn,
    translate_turn_errors,
)
from chatcore.models import Message, Session
from chatcore.rest import limits
from chatcore.rest.fields import StrictSerializer
from chatcore.rest.problems import InvalidFieldError
from chatcore.turns import deletion, service, versions

Role = Message.Role


def get_owned_message(request: Request, message_id: int) -> Message:
    """The message, if its session is the asker's; a 404 problem otherwise."""
    queryset = Message.objects.filter(
        session__in=Session.objects.owned_by(request.user)
    ).select_related("session__model__provider")
    return get_object_or_404(queryset, pk=message_id)


class RegenerateMessageView(APIView):
    """Another answer."""

    @extend_schema(
        operation_id="regenerate_message",
        request=RegenerateSerializer,
        parameters=TURN_PARAMETERS,
        responses=NEW_TURN_RESPONSES,
    )
    def post(self, request: Request, message_id: int) -> HttpResponseBase:
        """Answer the same user's message anew; what followed it is superseded: kept, and not sent. `model` is for this answer only."""
        message, options = _validate_request(request, message_id, RegenerateSerializer)
        idempotency = build_idempotency_fields(request, f"regenerate {message_id}", options)
        limits.count_turn(request)
        with translate_turn_errors():
            turn = service.regenerate_answer(message, model=options.get("model"), **idempotency)
        return respond_with_turn(request, turn, stream=options.get("stream", False))


class MessageDetailView(APIView):
    """One message."""

    @extend_schema(
        operation_id="edit_message",
        request=EditedMessageSerializer,
        parameters=TURN_PARAMETERS,
        responses={(200, "application/json"): MessageSerializer} | NEW_TURN_RESPONSES,
    )
    def patch(self, request: Request, message_id: int) -> HttpResponseBase:
        """Put another message in its place; it and what followed is superseded. A user's is answered anew; an answer (200) is not."""
        message, payload = _validate_request(request, message_id, EditedMessageSerializer)
        if message.role == Role.ASSISTANT:
            if "attachments" in payload:
                raise InvalidFieldError("attachments", "Only what a user says has files.")
            with translate_turn_errors():
                return _respond_with_message(versions.edit_answer(message, payload["content"]))
        idempotency = build_idempotency_fields(request, f"edit {message_id}", payload)
        limits.count_turn(request)
        attachment_ids = (
            resolve_attachments(message.session, payload["attachments"])
            if "attachments" in payload
            else None
        )
        with translate_turn_errors():
            turn = service.start_turn(
                message.session,
                content=payload["content"],
                attachments=attachment_ids,
                replaces=message,
                **idempotency,
            )
        return respond_with_turn(request, turn, stream=payload.get("stream", False))

    @extend_schema(
        operation_id="delete_message",
        request=None,
        responses={204: None, 409: NEW_TURN_RESPONSES[409]},
    )
    def delete(self, request: Request, message_id: int) -> Response:
        """Delete it, with the results of the tools it calls: out of the history, the search, the events and every summary."""
        message = get_owned_message(request, message_id)
        with translate_turn_errors():
            deletion.delete_message(message)
        return Response(status=204)


class RestoreMessageView(APIView):
    """An earlier version."""

    @extend_schema(
        operation_id="restore_message",
        request=None,
        responses={200: MessageSerializer, 409: NEW_TURN_RESPONSES[409]},
    )
    def post(self, request: Request, message_id: int) -> Response:
        """Bring back the version that the message belongs to; the present one is superseded. A current one stays as it is."""
        message = get_owned_message(request, message_id)
        with translate_turn_errors():
            return _respond_with_message(versions.restore_version(message))


def _validate_request(
    request: Request, message_id: int, serializer_class: type[StrictSerializer]
) -> tuple[Message, dict[str, Any]]:
    """A message that somebody said, and what is wished for instead."""
    message = get_owned_message(request, message_id)
    serializer = serializer_class(data=request.data)
    serializer.is_valid(raise_exception=True)
    if message.role not in (Role.ASSISTANT, Role.USER):
        raise InvalidFieldError("role", f"Not of a message of role {message.role}.")
    return message, serializer.validated_data


def _respond_with_message(message: Message) -> Response:
    message.session.refresh_from_db(fields=["compact_boundary_seq"])
    return Response(MessageSerializer(message, context=build_message_context(message.session)).data)
