"""Messages: the whole history in pages, one more said, many imported."""

from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.serializers import ImportedSerializer, ImportSerializer, MessageSerializer
from chatcore.api.sessions import get_owned_session, parse_flag
from chatcore.api.turn_responses import TURN_RESPONSES, build_message_context
from chatcore.api.turns import SEND_MESSAGE_SCHEMA, send_message
from chatcore.models import Message
from chatcore.rest import limits
from chatcore.rest.auth import ImportBodyParser
from chatcore.rest.problems import InvalidFieldError, Problem, TooLargeProblem
from chatcore.transfer import formats, reader, sessions

ORDERINGS = {"asc": "seq", "desc": "-seq"}


class MessageListView(GenericAPIView[Message]):
    """A session's messages, the compacted ones too, without what was superseded."""

    serializer_class = MessageSerializer

    @extend_schema(
        operation_id="list_messages",
        parameters=[
            OpenApiParameter("order", str, enum=sorted(ORDERINGS), default="asc"),
            OpenApiParameter(
                "superseded",
                bool,
                default=False,
                description="Show also what edits and other answers superseded.",
            ),
        ],
        responses=MessageSerializer(many=True),
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """A page of messages, by `seq`."""
        session = get_owned_session(request, session_id)
        order = request.query_params.get("order", "asc")
        if order not in ORDERINGS:
            raise InvalidFieldError("order", "Either asc or desc.")
        rows = (
            Message.objects.filter(session=session)
            .prefetch_related("attachments")
            .order_by(ORDERINGS[order])
        )
        if not parse_flag("superseded", request.query_params.get("superseded", "false")):
            rows = rows.exclude_superseded()
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(
            MessageSerializer(page, many=True, context=build_message_context(session)).data
        )

    @SEND_MESSAGE_SCHEMA
    def post(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Say something, and get it answered."""
        return send_message(request, session_id)


class MessageImportView(GenericAPIView[Message]):
    """Another system's history."""

    parser_classes = (ImportBodyParser,)
    serializer_class = ImportSerializer

    @extend_schema(
        operation_id="import_messages",
        responses={201: ImportedSerializer, 409: TURN_RESPONSES[409]},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Append messages, all or none, without calling a model."""
        session = get_owned_session(request, session_id)
        body = request.data
        if not isinstance(body, dict) or not {"messages"} <= set(body) <= {"messages", "format"}:
            raise InvalidFieldError(
                "messages",
                "The body is an object with `messages`, perhaps `format`, and nothing else.",
            )
        if (format_name := body.get("format", "chatcore")) not in formats.FORMATS:
            raise InvalidFieldError("format", f"One of {', '.join(formats.FORMATS)}.")
        try:
            messages = formats.to_chatcore(body["messages"], format_name)
            if isinstance(messages, list) and len(messages) > limits.IMPORT_MESSAGES:
                raise TooLargeProblem(f"An import has at most {limits.IMPORT_MESSAGES:,} messages.")
            rows = sessions.import_messages(session, messages)
        except reader.MessageTooLong as error:
            raise TooLargeProblem(str(error)) from None
        except reader.InvalidImport as error:
            raise InvalidFieldError(error.field, error.detail) from None
        except sessions.SessionBusy as error:
            raise Problem(409, "turn_running", str(error), turn=str(error.turn_id)) from None
        session.refresh_from_db(fields=["message_count"])
        seqs = [message.seq for message in rows]
        seq_range = (
            {"first_seq": seqs[0], "last_seq": seqs[-1]}
            if seqs
            else {"first_seq": None, "last_seq": None}
        )
        return Response(
            {"imported": len(seqs), **seq_range, "message_count": session.message_count}, status=201
        )
