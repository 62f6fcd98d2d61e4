"""Files of a session: upload one, download it, delete it; and store those inside a message."""

from collections.abc import Sequence
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.accounts.rights import find_default_model, select_models
from chatcore.api.ownership import filter_owned_attachments, get_owned_session
from chatcore.api.serializers.attachments import (
    AttachmentSerializer,
    InlineFile,
    UnsentFileSerializer,
    UnsentFilesSerializer,
    UploadSerializer,
)
from chatcore.api.uploads import TOO_LARGE_DETAIL, FileFormParser, read_single_file
from chatcore.base.keeping import refuse_if_kept
from chatcore.base.rest.problems import InvalidFieldError, Problem, TooLargeProblem
from chatcore.base.rest.routes import build_api_path
from chatcore.files import intake, output_store
from chatcore.models import Attachment, Session
from chatcore.turns.unsent_files import Excerpt, describe_excerpts, describe_first_message

# A browser must never treat a user's file as a page of this site: its scripts would run with the
# reader's session cookie.
DOWNLOAD_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}


MODEL_PARAMETER = OpenApiParameter(
    "model", {"type": "string"}, description="provider/name; without it the default model."
)


class AttachmentListView(APIView):
    """A session's files that are not sent yet."""

    parser_classes = (FileFormParser,)

    @extend_schema(operation_id="list_unsent_attachments", responses=UnsentFilesSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the files, oldest first, and what the model would read of each now."""
        session = get_owned_session(request, session_id)
        files = list(
            Attachment.objects.filter(session=session, message=None, kind=Attachment.Kind.FILE)
            .order_by("created_at", "id")
            .defer("data")
        )
        excerpts = describe_excerpts(session, files)
        rows = [_describe_file(file, excerpts.get(file.pk)) for file in files]
        return Response(UnsentFilesSerializer({"results": rows}).data)

    @extend_schema(
        operation_id="upload_attachment",
        request={"multipart/form-data": UploadSerializer},
        responses={
            201: AttachmentSerializer,
            409: OpenApiResponse(description="Too many uploaded files are not sent yet."),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Upload a file. A message must name its id within a day, or it is deleted."""
        session = get_owned_session(request, session_id)
        name, data = read_single_file(request)
        attachment = _store_file(session, "file", name, data, is_pending=True)
        headers = {"Location": build_api_path(request, f"attachments/{attachment.pk}")}
        # A serializer refers to itself, so it outlives the request: it gets no file of megabytes.
        fields = AttachmentSerializer.Meta.fields
        described = Attachment(**{name: getattr(attachment, name) for name in fields})
        return Response(AttachmentSerializer(described).data, status=201, headers=headers)


class AttachmentInspectionView(APIView):
    """A file that is only looked at, because its session does not exist yet."""

    parser_classes = (FileFormParser,)

    @extend_schema(
        operation_id="inspect_attachment",
        parameters=[MODEL_PARAMETER],
        request={"multipart/form-data": UploadSerializer},
        responses=UnsentFileSerializer,
    )
    def post(self, request: Request) -> Response:
        """Say what a model would read of a file in a first message. Nothing is stored."""
        name, data = read_single_file(request)
        models = select_models(request.user.pk)
        name_of_model = request.query_params.get("model", "")
        model = models.find_by_name(name_of_model) if name_of_model else None
        if not name_of_model:
            model = find_default_model(request.user.pk)
        try:
            file = intake.inspect_file(name=name, data=data, owner_id=request.user.pk)
        except intake.FileRejected as error:
            raise InvalidFieldError("file", str(error)) from None
        excerpt = describe_first_message(request.user, model, [file]).get(file.pk)
        body = _describe_file(file, excerpt) | {"id": None}
        return Response(UnsentFileSerializer(body).data)


class AttachmentDetailView(APIView):
    """One file."""

    @extend_schema(
        operation_id="download_attachment",
        responses={
            (200, "*/*"): OpenApiTypes.BINARY,
            410: OpenApiResponse(description="The output of a tool is no longer kept."),
        },
    )
    def get(self, request: Request, attachment_id: UUID) -> HttpResponse:
        """Return the bytes of the file as a download."""
        attachment = get_object_or_404(filter_owned_attachments(request), pk=attachment_id)
        disposition = content_disposition_header(True, attachment.name) or "attachment"
        return HttpResponse(
            _read_content(attachment),
            content_type=attachment.media_type,
            headers=DOWNLOAD_HEADERS | {"Content-Disposition": disposition},
        )

    @extend_schema(
        operation_id="delete_attachment",
        responses={
            204: None,
            409: OpenApiResponse(
                description="The file was sent and belongs to its message, or must be kept."
            ),
        },
    )
    def delete(self, request: Request, attachment_id: UUID) -> Response:
        """Delete a file that was not sent."""
        files = filter_owned_attachments(request).filter(pk=attachment_id)
        if not files.exists():  # without its bytes
            raise Http404
        refuse_if_kept(request.user.pk)
        # The condition is part of the DELETE, so that a message that is sent now keeps its file.
        deleted_count, _ = files.filter(message=None).only("id").delete()
        if not deleted_count:
            detail = "The file was sent. It is deleted together with its message."
            raise Problem(409, "attachment_sent", detail)
        return Response(status=204)


def resolve_attachments(session: Session, items: Sequence[UUID | InlineFile]) -> list[UUID]:
    """Return the ids of a message's files, in order, after storing those that are inside it.

    Raises the 413 problem, or the 400 problem that names the file.
    """
    inline_files = [item for item in items if isinstance(item, dict)]
    if any(len(item["data"]) > intake.MAX_BYTES for item in inline_files):
        raise TooLargeProblem(TOO_LARGE_DETAIL)
    attachment_ids = []
    for index, item in enumerate(items):
        if isinstance(item, dict):
            field = f"attachments[{index}].data"
            item = _store_file(session, field, item["name"], item["data"], is_pending=False).pk
        attachment_ids.append(item)
    return attachment_ids


def _describe_file(file: Attachment, excerpt: Excerpt | None) -> dict[str, object]:
    return {
        "id": file.pk,
        "name": file.name,
        "media_type": file.media_type,
        "size": file.size,
        "excerpt": excerpt,
    }


def _read_content(attachment: Attachment) -> bytes:
    """Return the bytes of a file. Raises the 410 problem."""
    try:
        return output_store.fetch_bytes(attachment)
    except output_store.OutputLost as error:
        raise Problem(410, "output_lost", str(error)) from None


def _store_file(
    session: Session, field: str, name: str, data: bytes, *, is_pending: bool
) -> Attachment:
    """Store a file; a pending one waits for a message that names it. Raises the problem."""
    try:
        return intake.store_file(session, name=name, data=data, is_pending=is_pending)
    except intake.FileRejected as error:
        raise InvalidFieldError(field, str(error)) from None
    except intake.TooManyUnsentFiles as error:
        raise Problem(409, "too_many_files_wait", str(error)) from None
