"""What a client says to a conversation: messages, the tools it runs, and what they came to."""

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from chatcore.api.attachments import AttachmentField
from chatcore.api.serializers import ModelNameField
from chatcore.files import intake
from chatcore.rest import limits
from chatcore.rest.fields import (
    JsonObjectField,
    StrictBooleanField,
    StrictSerializer,
    StrictTextField,
)
from chatcore.turns import client_tools

STREAM_HELP_TEXT = "Answer with the turn's events."


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


class NewMessageSerializer(StrictSerializer):
    """What a user says, in words, in files or in both."""

    content = StrictTextField(max_bytes=limits.MESSAGE_BYTES, required=False, allow_blank=True)
    attachments = serializers.ListField(
        child=AttachmentField(), required=False, max_length=intake.MAX_FILES
    )
    tools = serializers.ListField(
        child=ToolDefinitionSerializer(), required=False, max_length=client_tools.MAX_TOOLS
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Something is said."""
        return _require_content(attrs)


class EditedMessageSerializer(StrictSerializer):
    """What stands in place of a message. Without `attachments` its files come along; with them, those that are named by their ids."""

    content = StrictTextField(max_bytes=limits.MESSAGE_BYTES, required=False, allow_blank=True)
    attachments = serializers.ListField(
        child=AttachmentField(), required=False, max_length=intake.MAX_FILES
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Something is said."""
        return _require_content(attrs)


class RegenerateSerializer(StrictSerializer):
    """How another answer is given."""

    model = ModelNameField(required=False)
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)


class ToolResultSerializer(StrictSerializer):
    """What a tool that the client ran came to."""

    tool_call_id = StrictTextField(max_length=255)
    content = StrictTextField(allow_blank=True)
    is_error = StrictBooleanField(required=False)


class ToolResultsSerializer(StrictSerializer):
    """Results of calls that wait, all or some of them."""

    results = serializers.ListField(
        child=ToolResultSerializer(), min_length=1, max_length=client_tools.MAX_TOOLS
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)


def _require_content(attrs: dict[str, Any]) -> dict[str, Any]:
    """More than spaces, or at least a file."""
    if not attrs.get("content", "").strip():
        if not attrs.get("attachments"):
            raise serializers.ValidationError(
                {"content": ["It says nothing, and there is no file."]}
            )
        attrs["content"] = ""
    return attrs
