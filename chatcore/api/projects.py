"""Projects: list, create, read, change, delete; and their files."""

from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api import idempotency
from chatcore.api.attachments import DOWNLOAD_HEADERS
from chatcore.api.serializers.projects import (
    ProjectFileSerializer,
    ProjectSerializer,
    ProjectUploadSerializer,
)
from chatcore.api.uploads import FileFormParser, read_single_file
from chatcore.base.rest import conditions
from chatcore.base.rest.problems import InvalidFieldError, Problem
from chatcore.base.rest.routes import build_api_path
from chatcore.files import output_store
from chatcore.files.intake import FileRejected
from chatcore.models import Project, ProjectFile
from chatcore.projects import changes


class ProjectListView(GenericAPIView[Project]):
    """The user's projects."""

    serializer_class = ProjectSerializer

    def get_queryset(self) -> QuerySet[Project]:
        """Return the user's projects, newest first."""
        return _query_projects(self.request).order_by("-created_at", "-id")

    @extend_schema(operation_id="list_projects", responses=ProjectSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return a page of projects."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        operation_id="create_project",
        parameters=[*idempotency.PARAMETERS, conditions.ENTITY_TAG],
        responses={201: ProjectSerializer} | idempotency.RESPONSES,
    )
    @idempotency.repeatable()
    def post(self, request: Request) -> Response:
        """Create a project. Sessions enter it by their field `project`."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        try:
            project = changes.create_project(request.user, serializer.validated_data)
        except changes.TooManyProjects as error:
            raise InvalidFieldError("name", str(error)) from None
        return _respond(project, status=201)


@conditions.answers_unchanged
class ProjectDetailView(GenericAPIView[Project]):
    """One project."""

    serializer_class = ProjectSerializer

    @extend_schema(operation_id="read_project", parameters=[conditions.ENTITY_TAG])
    def get(self, request: Request, project_id: UUID) -> Response:
        """Return the project."""
        return _respond(_get_project(request, project_id))

    @extend_schema(
        operation_id="change_project",
        parameters=[conditions.IF_UNCHANGED, conditions.ENTITY_TAG],
        responses={200: ProjectSerializer} | conditions.CHANGED_RESPONSES,
    )
    def patch(self, request: Request, project_id: UUID) -> Response:
        """Change the given fields. All sessions of the project send them from the next request."""
        project = _get_project(request, project_id)
        serializer = self.get_serializer(project, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        return _respond(changes.edit_project(project.pk, values, check=self._check_unchanged))

    @extend_schema(
        operation_id="delete_project",
        parameters=[conditions.IF_UNCHANGED],
        responses={204: None} | conditions.CHANGED_RESPONSES,
    )
    def delete(self, request: Request, project_id: UUID) -> Response:
        """Delete the project with its files. Its sessions stay, and are in no project then."""
        project = _get_project(request, project_id)
        changes.delete_project(project.pk, check=self._check_unchanged)
        return Response(status=204)

    def _check_unchanged(self, project: Project) -> None:
        """Raise the 412 problem if the locked project is not as If-Match names it."""
        conditions.check_entity_tag(self.request, ProjectSerializer(project).data)


class ProjectFileListView(GenericAPIView[ProjectFile]):
    """The files of a project."""

    serializer_class = ProjectFileSerializer
    parser_classes = (FileFormParser,)

    def get_queryset(self) -> QuerySet[ProjectFile]:
        """Return the project's files in the order in which they are sent; no content is read."""
        project = _get_project(self.request, self.kwargs["project_id"])
        return project.files.defer("data", "text").order_by("created_at", "id")

    @extend_schema(operation_id="list_project_files", responses=ProjectFileSerializer(many=True))
    def get(self, request: Request, project_id: UUID) -> Response:
        """Return a page of files."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        operation_id="upload_project_file",
        request={"multipart/form-data": ProjectUploadSerializer},
        responses={
            201: ProjectFileSerializer,
            409: OpenApiResponse(description="The project has as many files as it may have."),
        },
    )
    def post(self, request: Request, project_id: UUID) -> Response:
        """Upload a file. All sessions of the project are sent its text from the next request."""
        project = _get_project(request, project_id)
        name, data = read_single_file(request)
        try:
            file = changes.add_file(project, name=name, data=data)
        except FileRejected as error:
            raise InvalidFieldError("file", str(error)) from None
        except changes.TooManyFiles as error:
            raise Problem(409, "too_many_files", str(error)) from None
        path = build_api_path(request, f"projects/{project.pk}/files/{file.pk}")
        representation = self.get_serializer(file).data
        return Response(representation, status=201, headers={"Location": path})


class ProjectFileDetailView(GenericAPIView[ProjectFile]):
    """One file of a project."""

    serializer_class = ProjectFileSerializer

    @extend_schema(
        operation_id="download_project_file",
        responses={
            (200, "*/*"): OpenApiTypes.BINARY,
            410: OpenApiResponse(description="The content of the file is lost."),
        },
    )
    def get(self, request: Request, project_id: UUID, file_id: UUID) -> HttpResponse:
        """Return the bytes of the file as a download."""
        file = _get_file(request, project_id, file_id)
        try:
            content = changes.read_file(file)
        except output_store.OutputLost as error:
            raise Problem(410, "output_lost", str(error)) from None
        disposition = content_disposition_header(True, file.name) or "attachment"
        headers = DOWNLOAD_HEADERS | {"Content-Disposition": disposition}
        return HttpResponse(content, content_type=file.media_type, headers=headers)

    @extend_schema(operation_id="delete_project_file", responses={204: None})
    def delete(self, request: Request, project_id: UUID, file_id: UUID) -> Response:
        """Delete the file. No session of the project is sent it any more."""
        changes.delete_file(_get_file(request, project_id, file_id))
        return Response(status=204)


def _query_projects(request: Request) -> QuerySet[Project]:
    return Project.objects.owned_by(request.user)


def _get_project(request: Request, project_id: UUID) -> Project:
    return get_object_or_404(_query_projects(request), pk=project_id)


def _get_file(request: Request, project_id: UUID, file_id: UUID) -> ProjectFile:
    project = _get_project(request, project_id)
    return get_object_or_404(ProjectFile, pk=file_id, project=project)


def _respond(project: Project, *, status: int = 200) -> Response:
    representation = ProjectSerializer(project).data
    headers = conditions.build_entity_headers(representation)
    return Response(representation, status=status, headers=headers)
