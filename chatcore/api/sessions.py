"""Sessions: list, create, read, change, delete."""

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.accounts.rights import find_default_model
from chatcore.api import idempotency
from chatcore.api.new_sessions import build_created_response
from chatcore.api.ownership import get_owned_session
from chatcore.api.serializers.projects import parse_project_id
from chatcore.api.serializers.sessions import SessionSerializer
from chatcore.base.rest import conditions
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.base.truncation import clean_text
from chatcore.models import Session
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.changes import record_session_change
from chatcore.sessions.deletion import delete_session

FLAGS = {"true": True, "1": True, "false": False, "0": False}


def parse_flag(name: str, text: str) -> bool:
    """Return the value of a query parameter that is true or false. Raises the 400 problem."""
    if text.lower() not in FLAGS:
        raise InvalidFieldError(name, "Either true or false.")
    return FLAGS[text.lower()]


def _parse_session(name: str, text: str) -> UUID:
    """Return the id of a session. Raises the 400 problem for another text."""
    try:
        return UUID(text)
    except ValueError:
        raise InvalidFieldError(name, "The id of a session.") from None


def _parse_project(text: str) -> UUID:
    """Return the id of a project. Raises the 400 problem for another text."""
    project_id = parse_project_id(text)
    if project_id is None:
        raise InvalidFieldError("project", "The id of a project.")
    return project_id


class SessionListView(GenericAPIView[Session]):
    """The user's sessions, the one used last first."""

    serializer_class = SessionSerializer

    def get_queryset(self) -> QuerySet[Session]:
        """Return the user's sessions that the query selects."""
        query = self.request.query_params
        user = self.request.user
        parent = _parse_session("parent", query["parent"]) if "parent" in query else None
        queryset = Session.objects.list_for(user, parent=parent)
        if "external_id" in query:
            # A name finds the session of a subagent as well, which no list shows.
            named_sessions = Session.objects.owned_by(user).filter(temporary=False)
            queryset = named_sessions.filter(external_id=clean_text(query["external_id"]))
            queryset = queryset.order_by("-updated_at", "-id")
        queryset = queryset.select_related("model__provider")
        words = clean_text(query.get("q", "")).strip()
        if words:
            queryset = queryset.filter(title__icontains=words)
        if "project" in query:
            queryset = queryset.filter(project=_parse_project(query["project"]))
        for name in ("archived", "pinned"):
            if name in query:
                queryset = queryset.filter(**{name: parse_flag(name, query[name])})
        return queryset

    @extend_schema(
        operation_id="list_sessions",
        parameters=[
            OpenApiParameter("q", str, description="Part of the title."),
            OpenApiParameter(
                "external_id", str, description="What a client of another API calls the session."
            ),
            OpenApiParameter(
                "parent", UUID, description="The id of a session: those of its subagents."
            ),
            OpenApiParameter("project", UUID, description="The id of a project: its sessions."),
            OpenApiParameter("archived", bool),
            OpenApiParameter("pinned", bool),
        ],
        responses=SessionSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """Return a page of sessions."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        operation_id="create_session",
        parameters=[*idempotency.PARAMETERS, conditions.ENTITY_TAG],
        responses={201: SessionSerializer} | idempotency.RESPONSES,
    )
    @idempotency.repeatable()
    def post(self, request: Request) -> Response:
        """Create a session. It gets the default language model if the body names none."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        default_model = find_default_model(request.user.pk)
        session = serializer.save(
            owner=request.user,
            model=serializer.validated_data.get("model", default_model),
        )
        archive_surplus_sessions(session)
        return build_created_response(request, session)


@conditions.answers_unchanged
class SessionDetailView(GenericAPIView[Session]):
    """One session."""

    serializer_class = SessionSerializer

    @extend_schema(operation_id="read_session", parameters=[conditions.ENTITY_TAG])
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the session."""
        return self._respond(get_owned_session(request, session_id))

    @extend_schema(
        operation_id="change_session",
        parameters=[conditions.IF_UNCHANGED, conditions.ENTITY_TAG],
        responses={200: SessionSerializer} | conditions.CHANGED_RESPONSES,
    )
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Change the given fields only. A running turn or compaction is not affected."""
        session = get_owned_session(request, session_id)
        serializer = self.get_serializer(session, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        # Not `serializer.save()`: it would write every column, and undo what a turn or a
        # compaction has written since the row was read.
        with transaction.atomic():
            if conditions.has_condition(request):
                self._check_unchanged(Session.objects.lock(session.pk))
            record_session_change(session.pk, serializer.validated_data)
        return self._respond(get_owned_session(request, session_id))

    @extend_schema(
        operation_id="delete_session",
        parameters=[conditions.IF_UNCHANGED],
        responses={204: None} | conditions.CHANGED_RESPONSES,
    )
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Delete the session with all its content. A running turn is stopped."""
        session = get_owned_session(request, session_id)
        delete_session(session.pk, check=self._check_unchanged)
        return Response(status=204)

    def _respond(self, session: Session) -> Response:
        representation = SessionSerializer(session).data
        return Response(representation, headers=conditions.build_entity_headers(representation))

    def _check_unchanged(self, session: Session) -> None:
        """Raise the 412 problem if the locked session is not as If-Match names it."""
        conditions.check_entity_tag(self.request, SessionSerializer(session).data)
