"""What a client says to a conversation: messages, the tools it runs, and what they came to."""

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from chatcore.api.attachments import AttachedField
from chatcore.api.serializers import ModelName
from chatcore.files import intake
from chatcore.rest import limits
from chatcore.rest.fields import Flag, Object, Strict, Text
from chatcore.turns import client_tools

STREAM = "Answer with the turn's events."


class ToolDefinitionSerializer(Strict):
    """A tool that the client runs itself; `parameters` is the JSON schema of an object."""

    name = Text(
        max_length=64,
        validators=[
            RegexValidator(rf"^{client_tools.NAME.pattern}$", "1 to 64 letters, digits, _ and -.")
        ],
    )
    description = Text(required=False, allow_blank=True)
    parameters = Object(required=False)


class NewMessageSerializer(Strict):
    """What a user says, in words, in files or in both."""

    content = Text(max_bytes=limits.MESSAGE_BYTES, required=False, allow_blank=True)
    attachments = serializers.ListField(
        child=AttachedField(), required=False, max_length=intake.MAX_FILES
    )
    tools = serializers.ListField(
        child=ToolDefinitionSerializer(), required=False, max_length=client_tools.MAX_TOOLS
    )
    stream = Flag(required=False, help_text=STREAM)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Something is said."""
        return _something(attrs)


class EditedMessageSerializer(Strict):
    """What stands in place of a message. Without `attachments` its files come along; with them, those that are named by their ids."""

    content = Text(max_bytes=limits.MESSAGE_BYTES, required=False, allow_blank=True)
    attachments = serializers.ListField(
        child=AttachedField(), required=False, max_length=intake.MAX_FILES
    )
    stream = Flag(required=False, help_text=STREAM)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Something is said."""
        return _something(attrs)


class RegenerateSerializer(Strict):
    """How another answer is given."""

    model = ModelName(required=False)
    stream = Flag(required=False, help_text=STREAM)


class ToolResultSerializer(Strict):
    """What a tool that the client ran came to."""

    tool_call_id = Text(max_length=255)
    content = Text(allow_blank=True)
    is_error = Flag(required=False)


class ToolResultsSerializer(Strict):
    """Results of calls that wait, all or some of them."""

    results = serializers.ListField(
        child=ToolResultSerializer(), min_length=1, max_length=client_tools.MAX_TOOLS
    )
    stream = Flag(required=False, help_text=STREAM)


def _something(said: dict[str, Any]) -> dict[str, Any]:
    """More than spaces, or at least a file."""
    if not said.get("content", "").strip():
        if not said.get("attachments"):
            raise serializers.ValidationError(
                {"content": ["It says nothing, and there is no file."]}
            )
        said["content"] = ""
    return said
