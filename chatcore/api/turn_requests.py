"""Requests that start or continue a turn: their bodies, and the key that makes them repeatable."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from chatcore.api import idempotency
from chatcore.api.serializers.attachments import AttachmentField
from chatcore.api.serializers.sessions import ModelNameField
from chatcore.api.serializers.turns import STREAM_HELP_TEXT
from chatcore.base.rest import limits
from chatcore.base.rest.fields import (
    JsonObjectField,
    StrictBooleanField,
    StrictSerializer,
    StrictTextField,
    body_rules,
)
from chatcore.files import intake
from chatcore.turns import client_tools

# A message has a text, or a file.
CONTENT_RULES = {
    "if": {"required": ["attachments"], "properties": {"attachments": {"minItems": 1}}},
    "else": {"required": ["content"], "properties": {"content": {"pattern": r"\S"}}},
}
PREFER_PARAMETER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`respond-async`: 202 at once; follow the events.",
)
TURN_PARAMETERS = [
    *idempotency.PARAMETERS,
    PREFER_PARAMETER,
]


class ToolDefinitionSerializer(StrictSerializer):
    """A tool that the client runs itself; `parameters` is the JSON schema of an object."""

    name = StrictTextField(
        max_length=64,
        validators=[
            RegexValidator(
                rf"^{client_tools.TOOL_NAME_PATTERN.pattern}$", "1 to 64 letters, digits, _ and -."
            )
        ],
    )
    description = StrictTextField(required=False, allow_blank=True)
    parameters = JsonObjectField(required=False)
    strict = serializers.BooleanField(required=False)


@body_rules(**CONTENT_RULES)
class NewMessageSerializer(StrictSerializer):
    """A user's message: text, files, or both."""

    content = StrictTextField(max_bytes=limits.MESSAGE_BYTES, required=False, allow_blank=True)
    attachments = serializers.ListField(
        child=AttachmentField(), required=False, max_length=intake.MAX_FILES
    )
    tools = serializers.ListField(
        child=ToolDefinitionSerializer(), required=False, max_length=client_tools.MAX_TOOLS
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)

    def validate(self, attrs: dict[str, Any]) -> dict[str, object]:
        """Refuse a message without text and files."""
        return _require_content(attrs)


@body_rules(**CONTENT_RULES)
class EditedMessageSerializer(StrictSerializer):
    """A new version of a message.

    Without `attachments` it keeps the files of the old version; with them, those whose ids are
    named.
    """

    content = StrictTextField(max_bytes=limits.MESSAGE_BYTES, required=False, allow_blank=True)
    attachments = serializers.ListField(
        child=AttachmentField(), required=False, max_length=intake.MAX_FILES
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)

    def validate(self, attrs: dict[str, Any]) -> dict[str, object]:
        """Refuse a message without text and files."""
        return _require_content(attrs)


class RegenerateSerializer(StrictSerializer):
    """Options of another answer."""

    model = ModelNameField(required=False)
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)


class ToolResultSerializer(StrictSerializer):
    """The result of a tool that the client ran."""

    tool_call_id = StrictTextField(max_length=255)
    content = StrictTextField(allow_blank=True)
    is_error = StrictBooleanField(required=False)


class ToolResultsSerializer(StrictSerializer):
    """Results of calls that wait for the client: all of them, or some."""

    results = serializers.ListField(
        child=ToolResultSerializer(), min_length=1, max_length=client_tools.MAX_TOOLS
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)


def build_idempotency_fields(
    request: Request, action: str, payload: Mapping[str, object]
) -> dict[str, Any]:
    """Return the Idempotency-Key (None if there is none) and a hash of the payload.

    `stream` is not part of the hash: a client may repeat a request and want the answer in another
    form. Raises the 400 problem for a key of the wrong length.
    """
    key = idempotency.parse_key(request)
    hashed_payload = {"act": action, **payload}
    hashed_payload.pop("stream", None)
    text = json.dumps(hashed_payload, sort_keys=True, default=str)
    return {"idempotency_key": key, "payload_hash": hashlib.sha256(text.encode()).hexdigest()}


def _require_content(attrs: dict[str, Any]) -> dict[str, object]:
    """Return the fields with a text. Raises ValidationError without text and without files."""
    if not attrs.get("content", "").strip():
        if not attrs.get("attachments"):
            raise serializers.ValidationError({"content": ["The message has no text and no file."]})
        attrs["content"] = ""
    return attrs
