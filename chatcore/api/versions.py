"""Versions of a message: answer again, edit, restore an earlier version; and delete."""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.attachments import resolve_attachments
from chatcore.api.ownership import get_owned_message
from chatcore.api.serializers.messages import MessageSerializer, build_message_context
from chatcore.api.turn_requests import (
    NEW_TURN_RESPONSES,
    TURN_PARAMETERS,
    EditedMessageSerializer,
    RegenerateSerializer,
    build_idempotency_fields,
    reserve_and_count_turn,
    respond_with_turn,
)
from chatcore.base.rest.fields import StrictSerializer
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.models import Message, Turn
from chatcore.turns import control, deletion, versions

Role = Message.Role


class RegenerateMessageView(APIView):
    """Another answer."""

    @extend_schema(
        operation_id="regenerate_message",
        request=RegenerateSerializer,
        parameters=TURN_PARAMETERS,
        responses=NEW_TURN_RESPONSES,
    )
    def post(self, request: Request, message_id: int) -> HttpResponseBase:
        """Answer the same user's message again.

        Messages after it are superseded: they stay stored and are not sent. `model` is used for
        this answer only.
        """
        message, options = _validate_request(request, message_id, RegenerateSerializer)
        idempotency = build_idempotency_fields(request, f"regenerate {message_id}", options)
        with reserve_and_count_turn(request, message.session, idempotency["idempotency_key"]):
            turn = control.regenerate_answer(message, model=options.get("model"), **idempotency)
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
        """Replace a message by a new version; it and all messages after it are superseded.

        A user's message is answered again. An edited answer is only stored (200).
        """
        message, payload = _validate_request(request, message_id, EditedMessageSerializer)
        if message.role == Role.USER:
            turn = _edit_question(request, message, payload)
            return respond_with_turn(request, turn, stream=payload.get("stream", False))
        if "attachments" in payload:
            raise InvalidFieldError("attachments", "Only a user's message has files.")
        return _respond_with_message(versions.edit_answer(message, payload["content"]))

    @extend_schema(
        operation_id="delete_message",
        request=None,
        responses={204: None, 409: NEW_TURN_RESPONSES[409]},
    )
    def delete(self, request: Request, message_id: int) -> Response:
        """Delete a message, with the results of its tool calls.

        Its text also disappears from the search, the events and every summary.
        """
        deletion.delete_message(get_owned_message(request, message_id))
        return Response(status=204)


class RestoreMessageView(APIView):
    """An earlier version."""

    @extend_schema(
        operation_id="restore_message",
        request=None,
        responses={200: MessageSerializer, 409: NEW_TURN_RESPONSES[409]},
    )
    def post(self, request: Request, message_id: int) -> Response:
        """Make the version that contains this message the current one again.

        The version that is current now is superseded. Nothing changes if it contains the message.
        """
        message = get_owned_message(request, message_id)
        return _respond_with_message(versions.restore_version(message))


def _edit_question(request: Request, message: Message, payload: dict[str, Any]) -> Turn:
    """Start the turn that answers a new version of the user's message."""
    idempotency = build_idempotency_fields(request, f"edit {message.pk}", payload)
    attachment_ids = None  # the new version keeps the files
    with reserve_and_count_turn(request, message.session, idempotency["idempotency_key"]):
        if "attachments" in payload:
            attachment_ids = resolve_attachments(message.session, payload["attachments"])
        return control.start_turn(
            message.session,
            content=payload["content"],
            attachments=attachment_ids,
            replaces=message,
            **idempotency,
        )


def _validate_request(
    request: Request, message_id: int, serializer_class: type[StrictSerializer]
) -> tuple[Message, dict[str, Any]]:
    """Return the user's or the assistant's message, and the validated body."""
    message = get_owned_message(request, message_id)
    serializer = serializer_class(data=request.data, context={"request": request})
    serializer.is_valid(raise_exception=True)
    if message.role not in (Role.ASSISTANT, Role.USER):
        raise InvalidFieldError("role", f"Not for a message of the role {message.role}.")
    return message, serializer.validated_data


def _respond_with_message(message: Message) -> Response:
    message.session.refresh_from_db(fields=["compact_boundary_seq"])
    context = build_message_context(message.session)
    return Response(MessageSerializer(message, context=context).data)
