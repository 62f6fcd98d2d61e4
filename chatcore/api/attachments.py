"""Files of a session: sent up before a message names them, or inside it; fetched; taken back."""

import base64
import binascii
from collections.abc import Sequence
from typing import IO, Any
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpResponse
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import exceptions, serializers
from rest_framework.parsers import BaseParser, DataAndFiles
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.serializers import AttachmentSerializer
from chatcore.api.sessions import get_owned_session
from chatcore.files import intake
from chatcore.models import Attachment, Session
from chatcore.rest import limits
from chatcore.rest.auth import build_api_path
from chatcore.rest.fields import StrictSerializer, StrictTextField
from chatcore.rest.problems import InvalidFieldError, Problem, TooLargeProblem

FORM_OVERHEAD_BYTES = 64 * limits.KB  # what a form adds to its file
# A file is never a page of ours, whatever a browser takes it for.
DOWNLOAD_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}
TOO_LARGE_DETAIL = f"A file has at most {intake.MAX_BYTES // (limits.KB * limits.KB)} MB."


class _MemoryUploadHandler(FileUploadHandler):
    """Keeps a file in memory, up to the limit: neither it nor its name reaches the disk from here."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.data = bytearray()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.data += raw_data
        if len(self.data) > intake.MAX_BYTES:
            raise TooLargeProblem(TOO_LARGE_DETAIL)

    def file_complete(self, file_size: int) -> Any:
        return ContentFile(bytes(self.data), name=self.file_name)


class FileFormParser(BaseParser):
    """A multipart form, for the one address that takes files."""

    media_type = "multipart/form-data"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None
    ) -> DataAndFiles:
        """Raises 413 before the body is read when it says how long it is, or as soon as a file is too long."""
        request = parser_context["request"]
        if int(request.META.get("CONTENT_LENGTH") or 0) > intake.MAX_BYTES + FORM_OVERHEAD_BYTES:
            raise TooLargeProblem(TOO_LARGE_DETAIL)
        try:
            body: Any = stream
            return DataAndFiles(
                *MultiPartParser(
                    request.META | {"CONTENT_TYPE": media_type},
                    body,
                    [_MemoryUploadHandler(request)],
                    "utf-8",
                ).parse()
            )
        except MultiPartParserError as error:
            raise exceptions.ParseError(f"The form cannot be read: {error}") from None


class UploadSerializer(serializers.Serializer[Any]):
    """One file. Its bytes say what it is: a text, a PDF file, or an image (PNG, JPEG, GIF, WebP)."""

    file = serializers.FileField()


class InlineFileSerializer(StrictSerializer):
    """A file inside a message; its bytes say what it is, whatever `media_type` says."""

    name = StrictTextField(max_length=255)
    media_type = StrictTextField(max_length=100, required=False)
    data = StrictTextField(help_text="In base64.")  # type: ignore[assignment]  # the framework keeps fields apart from its own attributes

    def validate_data(self, data: str) -> bytes:
        """The bytes."""
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise serializers.ValidationError("This is not base64.") from None


_INLINE_FILE_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 255},
        "media_type": {"type": "string", "minLength": 1, "maxLength": 100},
        "data": {"type": "string", "minLength": 1, "contentEncoding": "base64"},
    },
    "required": ["name", "data"],
    "additionalProperties": False,
}


@extend_schema_field({"oneOf": [{"type": "string", "format": "uuid"}, _INLINE_FILE_SCHEMA]})
class AttachmentField(serializers.Field):
    """The id of a file that was sent up before, or a file."""

    default_error_messages = {"invalid": "The id of a file, or an object with name and data."}

    def to_internal_value(self, data: Any) -> Any:
        """A UUID, or what InlineFileSerializer makes of an object."""
        if isinstance(data, dict):
            serializer = InlineFileSerializer(data=data)
            serializer.is_valid(raise_exception=True)
            return serializer.validated_data
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            return UUID(data)
        except ValueError:
            self.fail("invalid")


class AttachmentListView(APIView):
    """A session's files that were not sent yet."""

    parser_classes = (FileFormParser,)

    @extend_schema(
        operation_id="upload_attachment",
        request={"multipart/form-data": UploadSerializer},
        responses={
            201: AttachmentSerializer,
            409: OpenApiResponse(description="Too many files wait to be sent."),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Send a file up, to be named in a message within a day."""
        session = get_owned_session(request, session_id)
        name, data = _read_single_file(request)
        attachment = _store_file(session, "file", name, data)
        headers = {"Location": build_api_path(request, f"attachments/{attachment.pk}")}
        return Response(AttachmentSerializer(attachment).data, status=201, headers=headers)


class AttachmentDetailView(APIView):
    """One file."""

    @extend_schema(
        operation_id="download_attachment", responses={(200, "*/*"): OpenApiTypes.BINARY}
    )
    def get(self, request: Request, attachment_id: UUID) -> HttpResponse:
        """The bytes, as a download."""
        attachment = _get_owned_attachment(request, attachment_id)
        disposition = content_disposition_header(True, attachment.name) or "attachment"
        data = bytes(attachment.data) or attachment.text.encode()
        return HttpResponse(
            data,
            content_type=attachment.media_type,
            headers=DOWNLOAD_HEADERS | {"Content-Disposition": disposition},
        )

    @extend_schema(
        operation_id="delete_attachment",
        responses={
            204: None,
            409: OpenApiResponse(description="It was sent, and is a part of its message."),
        },
    )
    def delete(self, request: Request, attachment_id: UUID) -> Response:
        """Take back a file that was not sent."""
        attachment = _get_owned_attachment(request, attachment_id)
        if not Attachment.objects.filter(pk=attachment.pk, message=None).delete()[0]:
            raise Problem(409, "attachment_sent", "The file was sent; it goes with its message.")
        return Response(status=204)


def resolve_attachments(session: Session, items: Sequence[Any]) -> list[UUID]:
    """The ids of what a message names or brings, in its order; what it brings is stored. Raises 413, and 400 that names the file."""
    sizes = [len(item["data"]) for item in items if isinstance(item, dict)]
    if any(size > intake.MAX_BYTES for size in sizes):
        raise TooLargeProblem(TOO_LARGE_DETAIL)
    return [
        _store_file(
            session, f"attachments[{index}].data", item["name"], item["data"], waits=False
        ).pk
        if isinstance(item, dict)
        else item
        for index, item in enumerate(items)
    ]


def _read_single_file(request: Request) -> tuple[str, bytes]:
    body = request.data
    for name in body:
        if name not in ("file", "csrfmiddlewaretoken"):
            raise InvalidFieldError(name, "There is no such field.")
    uploads = request.FILES.getlist("file")
    if len(uploads) != 1:
        raise InvalidFieldError("file", "Exactly one file.")
    return uploads[0].name or "", uploads[0].read()


def _store_file(
    session: Session, field: str, name: str, data: bytes, *, waits: bool = True
) -> Attachment:
    try:
        return intake.store_file(session, name=name, data=data, is_pending=waits)
    except intake.FileRejected as error:
        raise InvalidFieldError(field, str(error)) from None
    except intake.TooManyUnsentFiles as error:
        raise Problem(409, "too_many_files_wait", str(error)) from None


def _get_owned_attachment(request: Request, attachment_id: UUID) -> Attachment:
    return get_object_or_404(
        Attachment, pk=attachment_id, session__in=Session.objects.owned_by(request.user)
    )
