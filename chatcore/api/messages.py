"""Messages: the whole history in pages, one more said, many imported."""

from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.serializers import ImportedSerializer, ImportSerializer, MessageSerializer
from chatcore.api.sessions import flag, owned
from chatcore.api.turn_responses import RESPONSES, shown
from chatcore.api.turns import MESSAGE_SCHEMA, post_message
from chatcore.models import Message
from chatcore.rest import limits
from chatcore.rest.auth import ImportBody
from chatcore.rest.problems import Invalid, Problem, TooLarge
from chatcore.transfer import formats, reader, sessions

ORDERS = {"asc": "seq", "desc": "-seq"}


class Messages(GenericAPIView[Message]):
    """A session's messages, the compacted ones too, without what was superseded."""

    serializer_class = MessageSerializer

    @extend_schema(
        operation_id="list_messages",
        parameters=[
            OpenApiParameter("order", str, enum=sorted(ORDERS), default="asc"),
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
        session = owned(request, session_id)
        order = request.query_params.get("order", "asc")
        if order not in ORDERS:
            raise Invalid("order", "Either asc or desc.")
        rows = (
            Message.objects.filter(session=session)
            .prefetch_related("attachments")
            .order_by(ORDERS[order])
        )
        if not flag("superseded", request.query_params.get("superseded", "false")):
            rows = rows.current()
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(
            MessageSerializer(page, many=True, context=shown(session)).data
        )

    @MESSAGE_SCHEMA
    def post(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Say something, and get it answered."""
        return post_message(request, session_id)


class Import(GenericAPIView[Message]):
    """Another system's history."""

    parser_classes = (ImportBody,)
    serializer_class = ImportSerializer

    @extend_schema(
        operation_id="import_messages", responses={201: ImportedSerializer, 409: RESPONSES[409]}
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Append messages, all or none, without calling a model."""
        session = owned(request, session_id)
        body = request.data
        if not isinstance(body, dict) or not {"messages"} <= set(body) <= {"messages", "format"}:
            raise Invalid(
                "messages",
                "The body is an object with `messages`, perhaps `format`, and nothing else.",
            )
        if (written := body.get("format", "chatcore")) not in formats.FORMATS:
            raise Invalid("format", f"One of {', '.join(formats.FORMATS)}.")
        try:
            own = formats.to_own(body["messages"], written)
            if isinstance(own, list) and len(own) > limits.IMPORT_MESSAGES:
                raise TooLarge(f"An import has at most {limits.IMPORT_MESSAGES:,} messages.")
            stored = sessions.import_messages(session, own)
        except reader.TooLong as long:
            raise TooLarge(str(long)) from None
        except reader.NotImportable as wrong:
            raise Invalid(wrong.field, wrong.detail) from None
        except sessions.StillAnswering as running:
            raise Problem(409, "turn_running", str(running), turn=str(running.turn_id)) from None
        session.refresh_from_db(fields=["message_count"])
        seqs = [message.seq for message in stored]
        ends = (
            {"first_seq": seqs[0], "last_seq": seqs[-1]}
            if seqs
            else {"first_seq": None, "last_seq": None}
        )
        return Response(
            {"imported": len(seqs), **ends, "message_count": session.message_count}, status=201
        )
