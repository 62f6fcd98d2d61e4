"""Histories as a whole: forks, pins, sessions out and in."""

from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.serializers import SessionSerializer
from chatcore.api.sessions import build_created_response, get_owned_session
from chatcore.api.turn_responses import translate_turn_errors
from chatcore.api.versions import get_owned_message
from chatcore.rest import limits
from chatcore.rest.auth import ImportBodyParser
from chatcore.rest.fields import StrictBooleanField, StrictSerializer
from chatcore.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.transfer import formats, reader, sessions
from chatcore.turns import forks, pins

FORMAT_PARAMETER = OpenApiParameter("format", str, enum=list(formats.FORMATS), default="chatcore")


class PinSerializer(StrictSerializer):
    """Pin, or take the pin out."""

    pinned = StrictBooleanField(default=True)


class PinnedSerializer(serializers.Serializer[Any]):
    """How it is now."""

    id = serializers.IntegerField()
    pinned = serializers.BooleanField()


class ForkMessageView(APIView):
    """A session that begins as this one did."""

    @extend_schema(
        operation_id="fork_message",
        request=None,
        responses={
            201: SessionSerializer,
            409: OpenApiResponse(description="The message was superseded."),
        },
    )
    def post(self, request: Request, message_id: int) -> Response:
        """Copy all up to this message into a new session, with the newest summary that the copied messages support."""
        message = get_owned_message(request, message_id)
        with translate_turn_errors():
            new_session = forks.fork_session(message)
        return build_created_response(request, get_owned_session(request, new_session.pk))


class PinMessageView(APIView):
    """A message that is sent verbatim for ever."""

    @extend_schema(operation_id="pin_message", request=PinSerializer, responses=PinnedSerializer)
    def post(self, request: Request, message_id: int) -> Response:
        """Pin it, or with `pinned: false` take the pin out."""
        message = get_owned_message(request, message_id)
        serializer = PinSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        pins.pin_message(message, pinned=serializer.validated_data["pinned"])
        return Response(PinnedSerializer(message).data)


class SessionExportView(APIView):
    """A session out."""

    @extend_schema(
        operation_id="export_session", parameters=[FORMAT_PARAMETER], responses=OpenApiTypes.OBJECT
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """The whole session: ours with its settings, files and summary; OpenAI's and Anthropic's message lists with what is current."""
        session = get_owned_session(request, session_id)
        format_name = request.query_params.get("format", "chatcore")
        if format_name not in formats.FORMATS:
            raise InvalidFieldError("format", f"One of {', '.join(formats.FORMATS)}.")
        return Response(
            sessions.export_as(session, format_name),
            headers={"Content-Disposition": f'attachment; filename="{session.pk}.json"'},
        )


class SessionImportView(APIView):
    """A session in."""

    parser_classes = (ImportBodyParser,)

    @extend_schema(
        operation_id="import_session",
        request=OpenApiTypes.OBJECT,
        responses={201: SessionSerializer},
    )
    def post(self, request: Request) -> Response:
        """A new session from what `export` gave, all or nothing."""
        _validate_exported_session(request.data)
        try:
            session = sessions.import_session(request.user, request.data)
        except reader.MessageTooLong as error:
            raise TooLargeProblem(str(error)) from None
        except reader.InvalidImport as error:
            raise InvalidFieldError(error.field, error.detail) from None
        return build_created_response(request, get_owned_session(request, session.pk))


def _validate_exported_session(data: Any) -> None:
    """Its length, and its settings as a client could set them; the rest is the reader's. Raises the problem that names the field."""
    data = data if isinstance(data, dict) else {}
    settings, messages = data.get("session"), data.get("messages")
    if isinstance(messages, list) and len(messages) > limits.SESSION_MESSAGES:
        raise TooLargeProblem(f"An import has at most {limits.SESSION_MESSAGES:,} messages.")
    if isinstance(settings, dict):
        serializer = SessionSerializer(
            data={name: settings[name] for name in sessions.SETTING_FIELDS if name in settings}
        )
        if not serializer.is_valid():
            raise serializers.ValidationError({"session": serializer.errors})
