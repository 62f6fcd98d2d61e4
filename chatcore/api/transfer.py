"""Histories in and out: import messages, export and import sessions."""

from collections.abc import Mapping
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.accounts import audit
from chatcore.api import idempotency
from chatcore.api.import_places import OneImportAtATime
from chatcore.api.long_responses import hand_over_stream
from chatcore.api.new_sessions import build_created_response
from chatcore.api.ownership import get_owned_session
from chatcore.api.serializers.messages import ImportedSerializer, ImportSerializer
from chatcore.api.serializers.sessions import SessionSerializer
from chatcore.api.turn_requests import TURN_RESPONSES
from chatcore.base.rest import conditions, limits
from chatcore.base.rest.auth import SignedInRequest
from chatcore.base.rest.commits import all_or_nothing
from chatcore.base.rest.parsers import ImportBodyParser, SessionBodyParser
from chatcore.base.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.models import Message
from chatcore.sessions.sections import load_sections
from chatcore.transfer import exporter, formats, importer, other_forms
from chatcore.transfer.markdown import write_markdown
from chatcore.transfer.transcript import stream_texts
from chatcore.transfer.user_export import stream_user_export

EXPORTED_SCHEMA = {
    "type": "object",
    "properties": {
        "format": {"type": "string", "const": exporter.FORMAT},
        "session": {"type": "object"},
        "messages": {"type": "array", "items": {"type": "object"}},
        "context": {"type": "object"},
        **{section.name: {"type": "array"} for section in load_sections()},
    },
    "required": ["format"],
}
FORMAT_PARAMETER = OpenApiParameter(
    "format",
    str,
    enum=[*formats.FORMATS, *other_forms.OTHER_FORMS, "markdown"],
    default="chatcore",
)


class MessageImportView(OneImportAtATime, GenericAPIView[Message]):
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
        body: dict[str, object] = {}

        def settle(rows: list[Message]) -> None:
            session.refresh_from_db(fields=["message_count"])
            body.update(
                imported=len(rows),
                first_seq=rows[0].seq if rows else None,
                last_seq=rows[-1].seq if rows else None,
                message_count=session.message_count,
            )
            idempotency.settle(request, body=body)

        with all_or_nothing(request):
            importer.import_messages(session, messages, on_stored=settle)
        return Response(body, status=201)


EXPORT_SCHEMA = {"description": "A file of the format: an object, or of Open WebUI's a list."}


class SessionExportView(APIView):
    """A session as a file."""

    @extend_schema(
        operation_id="export_session",
        parameters=[FORMAT_PARAMETER],
        responses={
            (200, "application/json"): EXPORT_SCHEMA,
            (200, "text/markdown"): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Return the whole session.

        Chatcore's format has settings, files, summary and all versions of messages. The formats of
        OpenAI and Anthropic have the current messages. Those of LibreChat and Open WebUI are files
        that these programs import, with all versions. Markdown is for people: the current messages
        under the names of their speakers, with tool calls and the summary; it is sent as it is
        written.
        """
        session = get_owned_session(request, session_id)
        name = request.query_params.get("format", "chatcore")
        if name == "markdown":
            return hand_over_stream(
                request,
                stream_texts(write_markdown(session)),
                content_type="text/markdown; charset=utf-8",
                headers={"Content-Disposition": f'attachment; filename="{session.pk}.md"'},
            )
        if name in other_forms.OTHER_FORMS:
            data = other_forms.export_in_form(session, name)
        else:
            format_name = _check_format(name, *other_forms.OTHER_FORMS, "markdown")
            data = exporter.export_as(session, format_name)
        return Response(
            data,
            headers={"Content-Disposition": f'attachment; filename="{session.pk}.json"'},
        )


class UserExportView(APIView):
    """Everything that is the user's, in one file."""

    @extend_schema(
        operation_id="export_user",
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: SignedInRequest) -> HttpResponseBase:
        """Return a ZIP file with all sessions, and the rows of other tables that are the user's.

        `sessions/ID.json` can be imported again. Nothing secret is in it. It is written while it is
        read; one that breaks off has no end, and no program opens it.
        """
        audit.record("user.exported", target=request.user, request=request)
        return hand_over_stream(
            request,
            stream_user_export(request.user),
            content_type="application/zip",
            headers={"Content-Disposition": 'attachment; filename="chatcore.zip"'},
        )


class SessionImportView(OneImportAtATime, APIView):
    """A session from a file."""

    parser_classes = (SessionBodyParser,)

    @extend_schema(
        operation_id="import_session",
        request={"application/json": EXPORTED_SCHEMA},
        parameters=[*idempotency.PARAMETERS, conditions.ENTITY_TAG],
        responses={201: SessionSerializer} | idempotency.RESPONSES,
    )
    @idempotency.repeatable(in_transaction=False)
    def post(self, request: Request) -> Response:
        """Create a session from what `export` returned: all of it, or nothing."""
        _validate_exported_session(request)
        with all_or_nothing(request):
            session = importer.import_session(
                request.user,
                request.data,
                on_stored=lambda new: idempotency.settle(request, session_id=new.pk),
            )
        return build_created_response(request, get_owned_session(request, session.pk))


def _parse_import(body: object) -> object:
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


def _check_format(name: object, *others: str) -> formats.Format:
    if name not in formats.FORMATS:
        raise InvalidFieldError("format", f"One of {', '.join((*formats.FORMATS, *others))}.")
    format_name: formats.Format = name
    return format_name


def _validate_exported_session(request: Request) -> None:
    """Check the number of messages, and the settings by the rules for clients.

    `transfer.importer` validates the rest, and the parameters, which depend on the model. Raises
    the problem that names the field.
    """
    data = request.data
    if not isinstance(data, Mapping):
        return
    messages = data.get("messages")
    if isinstance(messages, list) and len(messages) > limits.SESSION_MESSAGES:
        raise TooLargeProblem(f"An import has at most {limits.SESSION_MESSAGES:,} messages.")
    settings = data.get("session")
    if isinstance(settings, Mapping):
        names = set(exporter.SETTING_FIELDS).intersection(settings) - {"params"}
        values = {name: settings[name] for name in names}
        serializer = SessionSerializer(data=values, context={"request": request})
        if not serializer.is_valid():
            raise serializers.ValidationError({"session": serializer.errors})
