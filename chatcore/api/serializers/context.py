"""The context in the REST API: the summary, and the next request."""

from rest_framework import serializers

from chatcore.api.serializers.messages import ToolCallSerializer
from chatcore.base.rest import limits
from chatcore.base.rest.fields import (
    StrictIntegerField,
    StrictSerializer,
    StrictTextField,
    body_rules,
)


@body_rules(minProperties=1, maxProperties=1)
class SummarySerializer(StrictSerializer):
    """The text that replaces the compacted messages in requests."""

    summary = StrictTextField(max_bytes=limits.MESSAGE_BYTES, required=False)
    compacted_summary = StrictTextField(
        max_bytes=limits.MESSAGE_BYTES,
        required=False,
        help_text="Another name for `summary`: the name that it has in a session.",
    )

    def validate(self, attrs: dict[str, str]) -> dict[str, str]:
        """Return the text as `summary`. Raises ValidationError unless exactly one name is used."""
        if len(attrs) != 1:
            raise serializers.ValidationError(
                {"summary": ["Give it once, as summary or as compacted_summary."]}
            )
        return {"summary": next(iter(attrs.values()))}


class VersionSerializer(StrictSerializer):
    """An earlier version of the context; 0 is the whole history."""

    version = StrictIntegerField(min_value=0)


class ToolSerializer(serializers.Serializer[object]):
    """A tool as it is described to the model; `parameters` is a JSON schema."""

    name = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.DictField()


class SentImageSerializer(serializers.Serializer[object]):
    """An image that is sent, without its data."""

    media_type = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")


class SentMessageSerializer(serializers.Serializer[object]):
    """A message as it is sent. `seq` is null if it is not stored.

    `aside` is true if Chatcore wrote it in the user's role.
    """

    seq = serializers.IntegerField(allow_null=True)
    role = serializers.CharField()
    content = serializers.CharField()
    tool_calls = ToolCallSerializer(many=True)
    tool_call_id = serializers.CharField()
    tool_name = serializers.CharField()
    is_error = serializers.BooleanField()
    aside = serializers.BooleanField()
    images = SentImageSerializer(many=True)


class RecalledPassageSerializer(serializers.Serializer[object]):
    """A passage from before the boundary. `date` is the day on which it was said."""

    message = serializers.IntegerField()
    seq = serializers.IntegerField()
    role = serializers.CharField()
    date = serializers.CharField()
    text = serializers.CharField()
    tokens = serializers.IntegerField()


class RequestSerializer(serializers.Serializer[object]):
    """A request as it goes to a provider."""

    system = serializers.CharField()
    preface = serializers.CharField(help_text="A second system text, sent after `system`.")
    messages = SentMessageSerializer(many=True)
    tools = ToolSerializer(many=True)
    max_tokens = serializers.IntegerField(allow_null=True)
    params = serializers.DictField()


class PreviewSerializer(RequestSerializer):
    """What the next request would send, before the user's next message is added."""

    model = serializers.CharField()
    context_version = serializers.IntegerField()
    tokens = serializers.IntegerField(
        allow_null=True, help_text="The estimated tokens of all this; null where nobody estimates."
    )
    notices = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the user is told because messages are left out.",
    )
    left_out = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="The numbers of the messages that are left out because they do not fit.",
    )
    recalled = RecalledPassageSerializer(
        many=True,
        help_text=(
            "What the open turn, or else the newest, brought back about its question from before "
            "the boundary. Only an open turn's stand in `messages`."
        ),
    )
