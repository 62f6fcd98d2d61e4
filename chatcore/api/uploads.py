"""Uploads: receive the files of a multipart form in memory, up to the limit of a file."""

from typing import IO, Any

from django.core.files.base import ContentFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from rest_framework import exceptions
from rest_framework.parsers import BaseParser, DataAndFiles
from rest_framework.request import Request

from chatcore.base.rest import limits
from chatcore.base.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.files import intake

FORM_OVERHEAD_BYTES = 64 * limits.KB  # for the parts of a form besides its file
MAX_FORM_BYTES = intake.MAX_BYTES + FORM_OVERHEAD_BYTES
# How a text is sent that is too long for a message.
AS_FILE = (
    "A long text can be sent as a file, of which the model reads as much as fits: upload it with"
    " POST /api/v1/sessions/{id}/attachments (multipart, up to "
    f"{intake.MAX_BYTES // limits.MB} MB) and name its id in `attachments`, or put it there as"
    ' {"name": "text.txt", "data": BASE64}.'
)
TOO_LARGE_DETAIL = f"A file has at most {intake.MAX_BYTES // limits.MB} MB."


class FileFormParser(BaseParser):
    """A parser of multipart forms, for the one route that receives files."""

    media_type = "multipart/form-data"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None
    ) -> DataAndFiles:
        """Return the form's fields and files.

        Raises TooLargeProblem (413) before it reads the body if Content-Length is too large, and
        otherwise as soon as a file is.
        """
        request = parser_context["request"]
        content_length = int(request.META.get("CONTENT_LENGTH") or 0)
        if content_length > MAX_FORM_BYTES:
            raise TooLargeProblem(TOO_LARGE_DETAIL)
        meta = request.META | {"CONTENT_TYPE": media_type}
        body: Any = stream
        try:
            parser = MultiPartParser(meta, body, [_MemoryUploadHandler(request)], "utf-8")
            return DataAndFiles(*parser.parse())
        except MultiPartParserError as error:
            raise exceptions.ParseError(f"The form is not valid: {error}") from None


def read_single_file(request: Request) -> tuple[str, bytes]:
    """Return the name and the bytes of the form's file.

    Raises the 400 problem unless there is exactly one file and no other field.
    """
    for name in request.data:
        if name not in ("file", "csrfmiddlewaretoken"):
            raise InvalidFieldError(name, "There is no such field.")
    uploads = request.FILES.getlist("file")
    if len(uploads) != 1:
        raise InvalidFieldError("file", "Exactly one file.")
    data = uploads[0].read()
    # Django's request refers to itself, so it keeps its files until Python's collector comes.
    uploads[0].file.close()
    return uploads[0].name or "", data


class _MemoryUploadHandler(FileUploadHandler):
    """Receives a file in memory, so that neither its content nor its name reaches the disk."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.data = bytearray()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.data += raw_data
        if len(self.data) > intake.MAX_BYTES:
            raise TooLargeProblem(TOO_LARGE_DETAIL)

    def file_complete(self, file_size: int) -> Any:
        data, self.data = bytes(self.data), bytearray()
        return ContentFile(data, name=self.file_name)
