"""Messages of a session: list them, and send a new one to be answered."""

from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.attachments import resolve_attachments
from chatcore.api.ownership import find_owned_session, get_owned_session
from chatcore.api.serializers.messages import MessageSerializer, build_message_context
from chatcore.api.sessions import parse_flag
from chatcore.api.turn_requests import (
    NEW_TURN_RESPONSES,
    TURN_PARAMETERS,
    NewMessageSerializer,
    build_idempotency_fields,
    reserve_and_count_turn,
    respond_with_turn,
)
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.models import Message
from chatcore.turns import control

ORDERINGS = {"asc": "seq", "desc": "-seq"}


class MessageListView(GenericAPIView[Message]):
    """A session's messages, compacted ones included, superseded ones not."""

    serializer_class = MessageSerializer

    @extend_schema(
        operation_id="list_messages",
        parameters=[
            OpenApiParameter("order", str, enum=sorted(ORDERINGS), default="asc"),
            OpenApiParameter(
                "superseded",
                bool,
                default=False,
                description="Include messages that edits and other answers superseded.",
            ),
        ],
        responses=MessageSerializer(many=True),
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return a page of messages, ordered by `seq`."""
        session = get_owned_session(request, session_id)
        order = request.query_params.get("order", "asc")
        if order not in ORDERINGS:
            raise InvalidFieldError("order", "Either asc or desc.")
        rows = Message.objects.filter(session=session).prefetch_related("attachments")
        if not parse_flag("superseded", request.query_params.get("superseded", "false")):
            rows = rows.exclude_superseded()
        page = self.paginate_queryset(rows.order_by(ORDERINGS[order]))
        serializer = MessageSerializer(page, many=True, context=build_message_context(session))
        return self.get_paginated_response(serializer.data)

    @extend_schema(
        operation_id="send_message",
        request=NewMessageSerializer,
        parameters=TURN_PARAMETERS,
        responses=NEW_TURN_RESPONSES,
    )
    def post(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Start a turn; then wait for its end, stream it, or return at once, as requested."""
        session = find_owned_session(request, session_id)
        serializer = NewMessageSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        payload = serializer.validated_data
        idempotency = build_idempotency_fields(request, "send", payload)
        with reserve_and_count_turn(request, session, idempotency["idempotency_key"]):
            turn = control.start_turn(
                session,
                content=payload["content"],
                attachments=resolve_attachments(session, payload.get("attachments", ())),
                tools=payload.get("tools", ()),
                **idempotency,
            )
        return respond_with_turn(request, turn, stream=payload.get("stream", False))
