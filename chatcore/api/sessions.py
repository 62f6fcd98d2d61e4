"""Sessions: list, create, read, change, delete."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.serializers import SessionSerializer
from chatcore.events import log as event_log
from chatcore.models import Session
from chatcore.rest.auth import build_api_path
from chatcore.rest.problems import InvalidFieldError
from chatcore.sessions.truncation import clean_text
from chatcore.transfer import sessions as transfer_sessions
from models_registry.models import AiModel

FLAGS = {"true": True, "1": True, "false": False, "0": False}


def get_owned_session(request: Request, session_id: UUID) -> Session:
    """The session, if it is the asker's; a 404 problem otherwise."""
    queryset = Session.objects.owned_by(request.user).select_related("model__provider")
    return get_object_or_404(queryset, pk=session_id)


def build_created_response(request: Request, session: Session) -> Response:
    """A session that was just made, and where it is."""
    return Response(
        SessionSerializer(session).data,
        status=201,
        headers={"Location": build_api_path(request, f"sessions/{session.pk}")},
    )


class SessionListView(GenericAPIView[Session]):
    """The asker's sessions, the one used last first."""

    serializer_class = SessionSerializer

    def get_queryset(self) -> QuerySet[Session]:
        """As the query filters them."""
        query = self.request.query_params
        queryset = (
            Session.objects.owned_by(self.request.user)
            .select_related("model__provider")
            .order_by("-updated_at", "-id")
        )
        words = clean_text(query.get("q", "")).strip()
        if words:
            queryset = queryset.filter(title__icontains=words)
        for name in ("archived", "pinned"):
            if name in query:
                queryset = queryset.filter(**{name: parse_flag(name, query[name])})
        return queryset

    @extend_schema(
        operation_id="list_sessions",
        parameters=[
            OpenApiParameter("q", str, description="Part of the title."),
            OpenApiParameter("archived", bool),
            OpenApiParameter("pinned", bool),
        ],
        responses=SessionSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """A page of sessions."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(operation_id="create_session", responses={201: SessionSerializer})
    def post(self, request: Request) -> Response:
        """Begin a conversation, with the default language model if none is named."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        session = serializer.save(
            owner=request.user,
            model=serializer.validated_data.get("model", AiModel.objects.find_default()),
        )
        return build_created_response(request, session)


class SessionDetailView(GenericAPIView[Session]):
    """One session."""

    serializer_class = SessionSerializer

    @extend_schema(operation_id="read_session")
    def get(self, request: Request, session_id: UUID) -> Response:
        """The session as it is."""
        return Response(self.get_serializer(get_owned_session(request, session_id)).data)

    @extend_schema(operation_id="change_session")
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Change the given fields only; what runs beside it is not touched."""
        session = get_owned_session(request, session_id)
        serializer = self.get_serializer(session, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        update_session(session, serializer.validated_data)
        return Response(self.get_serializer(get_owned_session(request, session_id)).data)

    @extend_schema(operation_id="delete_session", responses={204: None})
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Delete the session and all that is in it, stopping the answer that is being given."""
        transfer_sessions.delete_session(get_owned_session(request, session_id).pk)
        return Response(status=204)


def update_session(session: Session, fields: dict[str, Any]) -> None:
    """Write these fields only, and tell open pages which. Raises Session.DoesNotExist when it was deleted meanwhile."""
    with transaction.atomic():
        if not Session.objects.filter(pk=session.pk).update(**fields, updated_at=timezone.now()):
            raise Session.DoesNotExist
        event_log.append_events(session.pk, ("session.updated", {"fields": sorted(fields)}))


def parse_flag(name: str, text: str) -> bool:
    """A query parameter that is true or false. Raises the 400 problem that names it."""
    if text.lower() not in FLAGS:
        raise InvalidFieldError(name, "Either true or false.")
    return FLAGS[text.lower()]
