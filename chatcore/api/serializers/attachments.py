"""Files in the REST API: stored ones, uploads, and files inside a message."""

import base64
import binascii
from typing import NotRequired, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatcore.base.rest.fields import StrictSerializer, StrictTextField
from chatcore.models import Attachment

INLINE_FILE_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 255},
        "media_type": {"type": "string", "minLength": 1, "maxLength": 100},
        "data": {"type": "string", "minLength": 1, "contentEncoding": "base64"},
    },
    "required": ["name", "data"],
    "additionalProperties": False,
}


class AttachmentSerializer(serializers.ModelSerializer[Attachment]):
    """A file of a message, without its bytes."""

    class Meta:
        model = Attachment
        fields = ("id", "name", "media_type", "size", "kind")
        read_only_fields = fields


class ExcerptSerializer(serializers.Serializer[object]):
    """The first part of a file that the model will read."""

    unit = serializers.ChoiceField(choices=["page", "character"])
    shown = serializers.IntegerField(help_text="0: nothing of it.")
    total = serializers.IntegerField(
        allow_null=True, help_text="Null: it has no text that can be read, as a scan."
    )


class UnsentFileSerializer(serializers.Serializer[object]):
    """A file before it is sent, and what the model will read of it."""

    id = serializers.UUIDField(allow_null=True, help_text="Null: it was only looked at.")
    name = serializers.CharField()
    media_type = serializers.CharField(
        help_text="With a `charset` where the encoding of a text had to be guessed."
    )
    size = serializers.IntegerField()
    excerpt = ExcerptSerializer(allow_null=True, help_text="Null: the model reads all of it.")


class UnsentFilesSerializer(serializers.Serializer[object]):
    """The files of a session that are not sent yet."""

    results = UnsentFileSerializer(many=True)


class UploadSerializer(serializers.Serializer[object]):
    """One file: a text, a PDF file, or an image (PNG, JPEG, GIF, WebP, HEIC, AVIF).

    Its bytes decide which of these it is.
    """

    file = serializers.FileField()


class InlineFileSerializer(StrictSerializer):
    """A file inside a message. Its bytes decide what it is; `media_type` is ignored."""

    name = StrictTextField(max_length=255)
    media_type = StrictTextField(max_length=100, required=False)
    # The framework moves declared fields out of the class, so `data` hides nothing.
    data = StrictTextField(help_text="The bytes in base64.")  # type: ignore[assignment]

    def validate_data(self, data: str) -> bytes:
        """Return the decoded bytes."""
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise serializers.ValidationError("This is not base64.") from None


class InlineFile(TypedDict):
    """The fields of InlineFileSerializer, with the bytes decoded."""

    name: str
    media_type: NotRequired[str]
    data: bytes


@extend_schema_field({"oneOf": [{"type": "string", "format": "uuid"}, INLINE_FILE_SCHEMA]})
class AttachmentField(serializers.Field):
    """The id of an uploaded file, or a file."""

    default_error_messages = {"invalid": "The id of a file, or an object with name and data."}

    def to_internal_value(self, data: object) -> UUID | InlineFile:
        """Return the UUID, or the file."""
        if isinstance(data, dict):
            serializer = InlineFileSerializer(data=data)
            serializer.is_valid(raise_exception=True)
            inline_file: InlineFile = serializer.validated_data
            return inline_file
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            return UUID(data)
        except ValueError:
            self.fail("invalid")
