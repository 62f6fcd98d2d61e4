"""Histories in and out: import messages, export and import sessions."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api import idempotency
from chatcore.api.ownership import get_owned_session
from chatcore.api.serializers.messages import ImportedSerializer, ImportSerializer
from chatcore.api.serializers.sessions import SessionSerializer
from chatcore.api.sessions import build_created_response
from chatcore.api.turn_responses import TURN_RESPONSES
from chatcore.models import Message
from chatcore.rest import conditions, limits
from chatcore.rest.commits import all_or_nothing
from chatcore.rest.parsers import ImportBodyParser
from chatcore.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.transfer import exporter, formats, importer

EXPORTED_SCHEMA = {
    "type": "object",
    "properties": {
        "format": {"type": "string", "const": exporter.FORMAT},
        "session": {"type": "object"},
        "messages": {"type": "array", "items": {"type": "object"}},
        "context": {"type": "object"},
        "ledger": {"type": "array"},
        "leaves": {"type": "array"},
    },
    "required": ["format"],
}
FORMAT_PARAMETER = OpenApiParameter("format", str, enum=list(formats.FORMATS), default="chatcore")


class MessageImportView(GenericAPIView[Message]):
    """Another system's history."""

    parser_classes = (ImportBodyParser,)
    serializer_class = ImportSerializer

    @extend_schema(
        operation_id="import_messages",
        parameters=idempotency.PARAMETERS,
        responses={
            201: ImportedSerializer,
            409: TURN_RESPONSES[409],
            422: idempotency.CONFLICT_RESPONSE,
        },
    )
    @idempotency.repeatable(in_transaction=False)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Append messages without calling a model: all of them, or none if one is not valid."""
        session = get_owned_session(request, session_id)
        messages = _parse_import(request.data)
        with all_or_nothing(request):
            rows = importer.import_messages(session, messages)
        session.refresh_from_db(fields=["message_count"])
        body = {
            "imported": len(rows),
            "first_seq": rows[0].seq if rows else None,
            "last_seq": rows[-1].seq if rows else None,
            "message_count": session.message_count,
        }
        return Response(body, status=201)


class SessionExportView(APIView):
    """A session as a file."""

    @extend_schema(
        operation_id="export_session", parameters=[FORMAT_PARAMETER], responses=OpenApiTypes.OBJECT
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the whole session.

        Chatcore's format has settings, files, summary and all versions of messages. The formats of
        OpenAI and Anthropic have the current messages.
        """
        session = get_owned_session(request, session_id)
        format_name = _check_format(request.query_params.get("format", "chatcore"))
        return Response(
            exporter.export_as(session, format_name),
            headers={"Content-Disposition": f'attachment; filename="{session.pk}.json"'},
        )


class SessionImportView(APIView):
    """A session from a file."""

    parser_classes = (ImportBodyParser,)

    @extend_schema(
        operation_id="import_session",
        request={"application/json": EXPORTED_SCHEMA},
        parameters=[*idempotency.PARAMETERS, conditions.ENTITY_TAG],
        responses={201: SessionSerializer} | idempotency.RESPONSES,
    )
    @idempotency.repeatable(in_transaction=False)
    def post(self, request: Request) -> Response:
        """Create a session from what `export` returned: all of it, or nothing."""
        _validate_exported_session(request.data)
        with all_or_nothing(request):
            session = importer.import_session(request.user, request.data)
        return build_created_response(request, get_owned_session(request, session.pk))


def _parse_import(body: Any) -> Any:
    """Return the messages of an import in Chatcore's format, not validated yet."""
    if not isinstance(body, dict) or not {"messages"} <= set(body) <= {"messages", "format"}:
        raise InvalidFieldError(
            "messages", "The body is an object with `messages`, and perhaps `format`, only."
        )
    format_name = _check_format(body.get("format", "chatcore"))
    messages = formats.to_chatcore(body["messages"], format_name)
    if isinstance(messages, list) and len(messages) > limits.IMPORT_MESSAGES:
        raise TooLargeProblem(f"An import has at most {limits.IMPORT_MESSAGES:,} messages.")
    return messages


def _check_format(name: Any) -> formats.Format:
    if name not in formats.FORMATS:
        raise InvalidFieldError("format", f"One of {', '.join(formats.FORMATS)}.")
    format_name: formats.Format = name
    return format_name


def _validate_exported_session(data: Any) -> None:
    """Check the number of messages, and the settings by the rules for clients.

    `transfer.importer` validates the rest, and the parameters, which depend on the model. Raises
    the problem that names the field.
    """
    if not isinstance(data, Mapping):
        return
    messages = data.get("messages")
    if isinstance(messages, list) and len(messages) > limits.SESSION_MESSAGES:
        raise TooLargeProblem(f"An import has at most {limits.SESSION_MESSAGES:,} messages.")
    settings = data.get("session")
    if isinstance(settings, Mapping):
        names = set(exporter.SETTING_FIELDS).intersection(settings) - {"params"}
        values = {name: settings[name] for name in names}
        serializer = SessionSerializer(data=values)
        if not serializer.is_valid():
            raise serializers.ValidationError({"session": serializer.errors})
