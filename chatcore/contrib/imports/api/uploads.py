"""Large exports in pieces: an upload that goes on where it broke, and the import made of it."""

import zlib
from collections.abc import Mapping
from typing import IO, Any
from uuid import UUID

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.base.rest import limits
from chatcore.base.rest.auth import SignedInRequest
from chatcore.base.rest.problems import Problem, TooLargeProblem
from chatcore.contrib.imports import jobs as import_jobs
from chatcore.contrib.imports.models import Import, ImportFile, ImportProblem

OFFSET_PARAMETER = OpenApiParameter(
    "offset", int, required=True, description="Bytes of the file before this piece."
)


class PieceParser(BaseParser):
    """A parser that leaves a piece of a file as it is."""

    media_type = "*/*"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> Any:
        """Return the bytes of the body. Raises TooLargeProblem."""
        content = stream.read(limits.BODY_BYTES + 1)
        if len(content) > limits.BODY_BYTES:
            raise TooLargeProblem("A piece of a file may have at most 2 MB.")
        return content


class UploadedFileSerializer(serializers.ModelSerializer[ImportFile]):
    """A file of an export."""

    class Meta:
        model = ImportFile
        fields = ("id", "name", "size", "received")
        read_only_fields = ("id", "received")


class ImportProblemSerializer(serializers.Serializer[ImportProblem]):
    """A chat that came in only in part, or not."""

    id = serializers.IntegerField(source="pk")
    title = serializers.CharField()
    session = serializers.UUIDField(source="session_id", allow_null=True)
    reasons = serializers.ListField(child=serializers.CharField())
    original_size = serializers.IntegerField()


class ImportStateSerializer(serializers.ModelSerializer[Import]):
    """An import, and how far it has come."""

    status = serializers.CharField(
        read_only=True, help_text="receiving, waiting, running, done or failed."
    )
    files = UploadedFileSerializer(many=True)

    class Meta:
        model = Import
        fields = (
            "id", "status", "product", "detail", "came", "partly", "refused", "known", "files",
            "created_at", "finished_at",
        )  # fmt: skip
        read_only_fields = (
            "id", "status", "product", "detail", "came", "partly", "refused", "known",
            "created_at", "finished_at",
        )  # fmt: skip


class ImportDetailSerializer(ImportStateSerializer):
    """An import with the chats that came in only in part, or not."""

    problems = ImportProblemSerializer(many=True, read_only=True)

    class Meta(ImportStateSerializer.Meta):
        fields = (*ImportStateSerializer.Meta.fields, "problems")  # type: ignore[assignment]


class ImportUploadSerializer(serializers.Serializer[dict[str, object]]):
    """The files that will be sent."""

    files = UploadedFileSerializer(many=True)


class UploadListView(APIView):
    """Imports by upload."""

    @extend_schema(
        operation_id="begin_import",
        request=ImportUploadSerializer,
        responses={201: ImportStateSerializer},
    )
    def post(self, request: SignedInRequest) -> Response:
        """Begin an import of up to 2 GB. Its files are then sent in pieces of up to 2 MB.

        A worker runs it when all bytes are there; `GET` the import to see how far it is.
        """
        serializer = ImportUploadSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        files = [(file["name"], file["size"]) for file in serializer.validated_data["files"]]
        try:
            row = import_jobs.begin_upload(request.user, files)
        except import_jobs.UploadRefused as error:
            raise Problem(400, "upload_refused", str(error)) from None
        return Response(ImportStateSerializer(row).data, status=201)


class UploadPieceView(APIView):
    """A file of an import."""

    parser_classes = (PieceParser,)

    @extend_schema(
        operation_id="send_piece",
        parameters=[OFFSET_PARAMETER],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={200: UploadedFileSerializer},
    )
    def put(self, request: Request, import_id: UUID, file_id: UUID) -> Response:
        """Send the next piece of a file. 409 says how many bytes there are, to go on there."""
        row = get_own_import(request, import_id)
        offset = request.query_params.get("offset", "")
        if not offset.isdigit():
            raise Problem(400, "validation_failed", "`offset` is a number of bytes.")
        content: Any = request.data or b""
        try:
            file = import_jobs.receive_part(file_id, row, offset=int(offset), data=content)
        except ImportFile.DoesNotExist:
            raise Http404 from None
        except import_jobs.WrongOffset as error:
            raise Problem(409, "wrong_offset", str(error)) from None
        return Response(UploadedFileSerializer(file).data)


class ImportDetailView(APIView):
    """An import."""

    @extend_schema(operation_id="get_import", responses={200: ImportDetailSerializer})
    def get(self, request: Request, import_id: UUID) -> Response:
        """Return how far an import is, and which chats came in only in part, or not."""
        return Response(ImportDetailSerializer(get_own_import(request, import_id)).data)

    @extend_schema(operation_id="delete_import", responses={204: None})
    def delete(self, request: Request, import_id: UUID) -> Response:
        """Stop an import, and forget it with its originals. The chats that came stay."""
        import_jobs.delete_import(get_own_import(request, import_id))
        return Response(status=204)


class ImportOriginalView(APIView):
    """A chat as it stands in the export."""

    @extend_schema(
        operation_id="download_original",
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, import_id: UUID, problem_id: int) -> HttpResponse:
        """Download a chat that came in only in part, or not, as it was exported."""
        problem = get_own_import(request, import_id).problems.filter(pk=problem_id).first()
        if problem is None or not problem.original_size:
            raise Http404
        name = f"{problem.pk}-{problem.original_name}".encode("ascii", "ignore").decode()
        safe_name = "".join(char if char.isalnum() or char in "-._ " else "_" for char in name)
        return HttpResponse(
            zlib.decompress(problem.original),
            content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{safe_name}"'},
        )


def get_own_import(request: Request, import_id: UUID) -> Import:
    """Return the user's import. Raises Http404."""
    row = Import.objects.filter(pk=import_id, owner=request.user.pk).first()
    if row is None:
        raise Http404
    return row
