"""What a client says to a conversation: messages, the tools it runs, and what they came to."""

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from chatcore import client_tools, files
from chatcore.api import limits
from chatcore.api.attachments import AttachedField
from chatcore.api.fields import Flag, Object, Strict, Text
from chatcore.api.serializers import ModelName

STREAM = "Answer with the turn's events."


class ToolDefinitionSerializer(Strict):
    """A tool that the client runs itself; `parameters` is the JSON schema of an object."""

    name = Text(max_length=64, validators=[RegexValidator(rf"^{client_tools.NAME.pattern}$", "1 to 64 letters, digits, _ and -.")])
    description = Text(required=False, allow_blank=True)
    parameters = Object(required=False)


class NewMessageSerializer(Strict):
    """What a user says."""

    content = Text(max_bytes=limits.MESSAGE_BYTES)
    attachments = serializers.ListField(child=AttachedField(), required=False, max_length=files.MAX_FILES)
    tools = serializers.ListField(child=ToolDefinitionSerializer(), required=False, max_length=client_tools.MAX_TOOLS)
    stream = Flag(required=False, help_text=STREAM)

    def validate_content(self, content: str) -> str:
        """More than spaces."""
        return _something(content)


class EditedMessageSerializer(Strict):
    """Other words in place of a message's."""

    content = Text(max_bytes=limits.MESSAGE_BYTES)
    stream = Flag(required=False, help_text=STREAM)

    def validate_content(self, content: str) -> str:
        """More than spaces."""
        return _something(content)


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

    results = serializers.ListField(child=ToolResultSerializer(), min_length=1, max_length=client_tools.MAX_TOOLS)
    stream = Flag(required=False, help_text=STREAM)


def _something(content: str) -> Any:
    if not content.strip():
        raise serializers.ValidationError("It says nothing.")
    return content
