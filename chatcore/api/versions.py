"""Versions: an answer given anew, a message edited, an earlier version brought back."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.attachments import taken_in
from chatcore.api.serializers import MessageSerializer
from chatcore.api.turn_requests import EditedMessageSerializer, RegenerateSerializer
from chatcore.api.turn_responses import NEW_TURN, PARAMETERS, keyed, refusals, respond, shown
from chatcore.models import Message, Session
from chatcore.rest import limits
from chatcore.rest.fields import Strict
from chatcore.rest.problems import Invalid
from chatcore.turns import deletion, service, versions

Role = Message.Role


def owned_message(request: Request, message_id: int) -> Message:
    """The message, if its session is the asker's; a 404 problem otherwise."""
    mine = Message.objects.filter(
        session__in=Session.objects.owned_by(request.user)
    ).select_related("session__model__provider")
    return get_object_or_404(mine, pk=message_id)


class Regenerate(APIView):
    """Another answer."""

    @extend_schema(
        operation_id="regenerate_message",
        request=RegenerateSerializer,
        parameters=PARAMETERS,
        responses=NEW_TURN,
    )
    def post(self, request: Request, message_id: int) -> HttpResponseBase:
        """Answer the same user's message anew; what followed it is superseded: kept, and not sent. `model` is for this answer only."""
        message, asked = _asked(request, message_id, RegenerateSerializer)
        key = keyed(request, f"regenerate {message_id}", asked)
        limits.count_turn(request)
        with refusals():
            turn = service.regenerate(message, model=asked.get("model"), **key)
        return respond(request, turn, stream=asked.get("stream", False))


class OneMessage(APIView):
    """One message."""

    @extend_schema(
        operation_id="edit_message",
        request=EditedMessageSerializer,
        parameters=PARAMETERS,
        responses={(200, "application/json"): MessageSerializer} | NEW_TURN,
    )
    def patch(self, request: Request, message_id: int) -> HttpResponseBase:
        """Put another message in its place; it and what followed is superseded. A user's is answered anew; an answer (200) is not."""
        message, said = _asked(request, message_id, EditedMessageSerializer)
        if message.role == Role.ASSISTANT:
            if "attachments" in said:
                raise Invalid("attachments", "Only what a user says has files.")
            with refusals():
                return _shown(versions.reword(message, said["content"]))
        key = keyed(request, f"edit {message_id}", said)
        limits.count_turn(request)
        attached = taken_in(message.session, said["attachments"]) if "attachments" in said else None
        with refusals():
            turn = service.start(
                message.session,
                content=said["content"],
                attachments=attached,
                replaces=message,
                **key,
            )
        return respond(request, turn, stream=said.get("stream", False))

    @extend_schema(
        operation_id="delete_message", request=None, responses={204: None, 409: NEW_TURN[409]}
    )
    def delete(self, request: Request, message_id: int) -> Response:
        """Delete it, with the results of the tools it calls: out of the history, the search, the events and every summary."""
        message = owned_message(request, message_id)
        with refusals():
            deletion.delete_message(message)
        return Response(status=204)


class Restore(APIView):
    """An earlier version."""

    @extend_schema(
        operation_id="restore_message",
        request=None,
        responses={200: MessageSerializer, 409: NEW_TURN[409]},
    )
    def post(self, request: Request, message_id: int) -> Response:
        """Bring back the version that the message belongs to; the present one is superseded. A current one stays as it is."""
        message = owned_message(request, message_id)
        with refusals():
            return _shown(versions.restore(message))


def _asked(
    request: Request, message_id: int, serializer: type[Strict]
) -> tuple[Message, dict[str, Any]]:
    """A message that somebody said, and what is wished for instead."""
    message = owned_message(request, message_id)
    fields = serializer(data=request.data)
    fields.is_valid(raise_exception=True)
    if message.role not in (Role.ASSISTANT, Role.USER):
        raise Invalid("role", f"Not of a message of role {message.role}.")
    return message, fields.validated_data


def _shown(message: Message) -> Response:
    message.session.refresh_from_db(fields=["compact_boundary_seq"])
    return Response(MessageSerializer(message, context=shown(message.session)).data)
