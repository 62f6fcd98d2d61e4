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
from chatcore.api.sessions import created, owned
from chatcore.api.turn_responses import refusals
from chatcore.api.versions import owned_message
from chatcore.rest import limits
from chatcore.rest.auth import ImportBody
from chatcore.rest.fields import Flag, Strict
from chatcore.rest.problems import Invalid, TooLarge
from chatcore.transfer import formats, reader, sessions
from chatcore.turns import forks, pins

FORMAT = OpenApiParameter("format", str, enum=list(formats.FORMATS), default="chatcore")


class PinSerializer(Strict):
    """Pin, or take the pin out."""

    pinned = Flag(default=True)


class PinnedSerializer(serializers.Serializer[Any]):
    """How it is now."""

    id = serializers.IntegerField()
    pinned = serializers.BooleanField()


class Fork(APIView):
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
        message = owned_message(request, message_id)
        with refusals():
            made = forks.fork(message)
        return created(request, owned(request, made.pk))


class Pin(APIView):
    """A message that is sent verbatim for ever."""

    @extend_schema(operation_id="pin_message", request=PinSerializer, responses=PinnedSerializer)
    def post(self, request: Request, message_id: int) -> Response:
        """Pin it, or with `pinned: false` take the pin out."""
        message = owned_message(request, message_id)
        fields = PinSerializer(data=request.data)
        fields.is_valid(raise_exception=True)
        pins.pin(message, pinned=fields.validated_data["pinned"])
        return Response(PinnedSerializer(message).data)


class Export(APIView):
    """A session out."""

    @extend_schema(
        operation_id="export_session", parameters=[FORMAT], responses=OpenApiTypes.OBJECT
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """The whole session: ours with its settings, files and summary; OpenAI's and Anthropic's message lists with what is current."""
        session = owned(request, session_id)
        wanted = request.query_params.get("format", "chatcore")
        if wanted not in formats.FORMATS:
            raise Invalid("format", f"One of {', '.join(formats.FORMATS)}.")
        return Response(
            sessions.export_as(session, wanted),
            headers={"Content-Disposition": f'attachment; filename="{session.pk}.json"'},
        )


class ImportSession(APIView):
    """A session in."""

    parser_classes = (ImportBody,)

    @extend_schema(
        operation_id="import_session",
        request=OpenApiTypes.OBJECT,
        responses={201: SessionSerializer},
    )
    def post(self, request: Request) -> Response:
        """A new session from what `export` gave, all or nothing."""
        _check(request.data)
        try:
            made = sessions.import_session(request.user, request.data)
        except reader.TooLong as long:
            raise TooLarge(str(long)) from None
        except reader.NotImportable as wrong:
            raise Invalid(wrong.field, wrong.detail) from None
        return created(request, owned(request, made.pk))


def _check(exported: Any) -> None:
    """Its length, and its settings as a client could set them; the rest is the reader's. Raises the problem that names the field."""
    exported = exported if isinstance(exported, dict) else {}
    settings, messages = exported.get("session"), exported.get("messages")
    if isinstance(messages, list) and len(messages) > limits.SESSION_MESSAGES:
        raise TooLarge(f"An import has at most {limits.SESSION_MESSAGES:,} messages.")
    if isinstance(settings, dict):
        fields = SessionSerializer(
            data={name: settings[name] for name in sessions.SETTINGS if name in settings}
        )
        if not fields.is_valid():
            raise serializers.ValidationError({"session": fields.errors})
