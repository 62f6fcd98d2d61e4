"""What the API shows of sessions, messages, turns, models and tokens, and what it takes."""

from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatcore.api.params import ParamsField
from chatcore.models import Attachment, Message, Session
from chatcore.providers.base import Image
from chatcore.rest import limits
from chatcore.rest.fields import (
    RatioField,
    StrictBooleanField,
    StrictIntegerField,
    StrictSerializer,
    StrictTextField,
)
from chatcore.tools import registry as tool_registry
from models_registry.models import AiModel


@extend_schema_field(str)
class ModelNameField(serializers.Field):
    """A language model by its name or `provider/name`; shown as `provider/name`."""

    default_error_messages = {
        "unknown": "There is no usable language model of this name.",
        "invalid": "Not a valid string.",
    }

    def to_internal_value(self, data: Any) -> AiModel:
        """The usable model of that name."""
        if not isinstance(data, str):
            self.fail("invalid")
        model = AiModel.objects.find_by_name(data)
        if model is None:
            self.fail("unknown")
        return model

    def to_representation(self, value: AiModel) -> str:
        """As `provider/name`, which is never ambiguous."""
        return str(value)


class SessionSerializer(StrictSerializer, serializers.ModelSerializer[Session]):
    """A conversation, and what the model sees of it now."""

    title = StrictTextField(max_length=200, allow_blank=True, required=False)
    model = ModelNameField(allow_null=True, required=False)
    system_prompt = StrictTextField(
        max_bytes=limits.MESSAGE_BYTES, allow_blank=True, required=False
    )
    policy = StrictTextField(max_length=64, allow_blank=True, required=False)
    auto_compact = StrictBooleanField(required=False)
    compact_threshold = RatioField(
        allow_null=True, required=False, help_text="In place of the policy's own trigger.threshold."
    )
    tools = serializers.ListField(
        child=StrictTextField(max_length=128), allow_null=True, required=False, max_length=64
    )
    params = ParamsField(required=False)
    pinned = StrictBooleanField(required=False)
    archived = StrictBooleanField(required=False)

    class Meta:
        model = Session
        fields = (
            "id",
            "title",
            "model",
            "system_prompt",
            "policy",
            "auto_compact",
            "compact_threshold",
            "tools",
            "params",
            "pinned",
            "archived",
            "compacted_summary",
            "compact_boundary_seq",
            "compact_boundary_timestamp",
            "context_version",
            "message_count",
            "created_at",
            "updated_at",
        )
        read_only_fields = (
            "compacted_summary",
            "compact_boundary_seq",
            "compact_boundary_timestamp",
            "context_version",
            "message_count",
            "created_at",
            "updated_at",
        )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A threshold of the session's own must be one that its policy can take; the settings say who knows."""

        def get_new_value(name: str) -> Any:
            return attrs[name] if name in attrs else getattr(self.instance, name, None)

        threshold, validator_path = (
            get_new_value("compact_threshold"),
            settings.CHATCORE["VALIDATE_OVERRIDE"],
        )
        if (
            validator_path
            and threshold is not None
            and not attrs.keys().isdisjoint({"compact_threshold", "policy", "model"})
        ):
            import_string(validator_path)(
                threshold,
                get_new_value("policy") or "",
                getattr(get_new_value("model"), "policy", ""),
            )
        return attrs

    def validate_policy(self, name: str) -> str:
        """Only a policy that whoever compacts knows; the settings say who that is."""
        policies_path = settings.CHATCORE["POLICIES"]
        if name and policies_path and name not in import_string(policies_path)():
            raise serializers.ValidationError("There is no compaction policy of this name.")
        return name

    def validate_tools(self, names: list[str] | None) -> list[str] | None:
        """Only tools that are there."""
        unknown_names = sorted(
            set(names or ()) - {tool.name for tool in tool_registry.build_definitions()}
        )
        if unknown_names:
            raise serializers.ValidationError(
                f"There is no tool called {', '.join(unknown_names)}."
            )
        return names


class ToolCallSerializer(StrictSerializer):
    """A call of a tool; `arguments` is the JSON text that the model wrote."""

    id = StrictTextField(max_length=255)
    name = StrictTextField(max_length=128)
    arguments = StrictTextField(allow_blank=True)


class AttachmentSerializer(serializers.ModelSerializer[Attachment]):
    """A file that came with a message, without its bytes."""

    class Meta:
        model = Attachment
        fields = ("id", "name", "media_type", "size", "kind")
        read_only_fields = fields


class MessageSerializer(serializers.ModelSerializer[Message]):
    """A stored message. Needs the session's boundary in the context, as `boundary`, and what `versions.places` gives, as `versions`."""

    tool_calls = ToolCallSerializer(many=True)
    attachments = AttachmentSerializer(many=True)
    replaces = serializers.IntegerField(
        source="replaces_id",
        allow_null=True,
        help_text="The message of which it is another version.",
    )
    versions = serializers.SerializerMethodField()
    superseded = serializers.SerializerMethodField()
    compacted = serializers.SerializerMethodField()

    class Meta:
        model = Message
        fields = (
            "id",
            "seq",
            "role",
            "content",
            "tool_calls",
            "tool_call_id",
            "tool_name",
            "is_error",
            "reasoning",
            "attachments",
            "status",
            "model",
            "pinned",
            "token_count_input",
            "token_count_output",
            "token_count_cache_read",
            "token_count_cache_write",
            "token_estimate",
            "original_chars",
            "replaces",
            "versions",
            "superseded",
            "compacted",
            "created_at",
        )
        read_only_fields = fields

    def get_versions(self, message: Message) -> list[int]:
        """The ids of all versions at its place, oldest first, its own among them; empty when there is no other."""
        version_ids: list[int] = self.context.get("versions", {}).get(message.pk, [])
        return version_ids

    def get_superseded(self, message: Message) -> bool:
        """Whether an edit or another answer took its place; it is kept, and not sent."""
        return message.branch is not None

    def get_compacted(self, message: Message) -> bool:
        """Whether the summary stands for it."""
        return message.seq < (self.context.get("boundary") or 0)


class AnswerSerializer(serializers.Serializer[Any]):
    """A turn that has ended, or waits for the results of tools that the client runs."""

    turn = serializers.UUIDField()
    status = serializers.ChoiceField(["completed", "waiting", "cancelled"])
    user_message = MessageSerializer(
        allow_null=True, help_text="The message that was answered; null when it was deleted since."
    )
    assistant_message = MessageSerializer(
        allow_null=True, help_text="Null when the turn was cancelled before a word was said."
    )
    tool_messages = MessageSerializer(
        many=True, help_text="The results of the tools that were called, in order."
    )
    requires_action = ToolCallSerializer(
        many=True,
        help_text="The calls whose results the client has to bring; empty when none waits.",
    )
    notices = serializers.ListField(child=serializers.CharField())


class StartedTurnSerializer(serializers.Serializer[Any]):
    """A turn that is being answered; follow `events`."""

    turn = serializers.UUIDField()
    session = serializers.UUIDField()
    user_message = serializers.IntegerField(allow_null=True)
    events = serializers.CharField()


class ImportedMessageSerializer(serializers.Serializer[Any]):
    """A message of another system's history. System messages are kept for the record; what is sent is the session's system_prompt."""

    closed = True
    role = serializers.ChoiceField(Message.Role.choices)
    content = serializers.CharField(required=False, allow_blank=True)
    tool_calls = ToolCallSerializer(many=True, required=False)
    tool_call_id = serializers.CharField(
        required=False, help_text="Of a tool's result: the call before it that it answers."
    )
    tool_name = serializers.CharField(required=False)
    is_error = serializers.BooleanField(required=False)
    created_at = serializers.DateTimeField(required=False)


class ImportSerializer(serializers.Serializer[Any]):
    """At most 10,000 messages, oldest first."""

    closed = True

    messages = ImportedMessageSerializer(many=True)
    format = serializers.ChoiceField(
        ["chatcore", "openai", "anthropic"],
        required=False,
        help_text="How the messages are written.",
    )


class ImportedSerializer(serializers.Serializer[Any]):
    """What an import added."""

    imported = serializers.IntegerField()
    first_seq = serializers.IntegerField(allow_null=True)
    last_seq = serializers.IntegerField(allow_null=True)
    message_count = serializers.IntegerField()


class CancelledSerializer(serializers.Serializer[Any]):
    """Whether there was something to stop."""

    cancelled = serializers.BooleanField()


class SummarySerializer(StrictSerializer):
    """The text that stands for the compacted messages."""

    summary = StrictTextField(max_bytes=limits.MESSAGE_BYTES, required=False)
    compacted_summary = StrictTextField(
        max_bytes=limits.MESSAGE_BYTES,
        required=False,
        help_text="The same, as the session calls it.",
    )

    def validate(self, attrs: dict[str, str]) -> dict[str, str]:
        """One of the two names."""
        if len(attrs) != 1:
            raise serializers.ValidationError(
                {"summary": ["Give it once, as summary or as compacted_summary."]}
            )
        return {"summary": next(iter(attrs.values()))}


class ToolSerializer(serializers.Serializer[Any]):
    """A tool as the model is told of it; `parameters` is a JSON schema."""

    name = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.DictField()


class SentImageSerializer(serializers.Serializer[Any]):
    """An image that is sent, without its data."""

    media_type = serializers.CharField()
    size = serializers.SerializerMethodField()

    def get_size(self, image: Image) -> int:
        """Bytes."""
        return len(image.data)


class SentMessageSerializer(serializers.Serializer[Any]):
    """A message as it is sent; `seq` is null for what is not stored, `aside` tells words of ours in the user's role."""

    seq = serializers.IntegerField(allow_null=True)
    role = serializers.CharField()
    content = serializers.CharField()
    tool_calls = ToolCallSerializer(many=True)
    tool_call_id = serializers.CharField()
    tool_name = serializers.CharField()
    is_error = serializers.BooleanField()
    aside = serializers.BooleanField()
    images = SentImageSerializer(many=True)


class PreviewSerializer(serializers.Serializer[Any]):
    """What the next request would send, before the user's next message is added."""

    model = serializers.CharField()
    context_version = serializers.IntegerField()
    system = serializers.CharField()
    preface = serializers.CharField(help_text="A second system text, of its own.")
    messages = SentMessageSerializer(many=True)
    tools = ToolSerializer(many=True)
    max_tokens = serializers.IntegerField(allow_null=True)
    params = serializers.DictField()


class AiModelSerializer(serializers.ModelSerializer[AiModel]):
    """A language model; an unknown window is null. Prices are per million tokens."""

    id = serializers.CharField(source="__str__", help_text="provider/name")
    provider = serializers.CharField(source="provider.name")
    input_price = serializers.FloatField(allow_null=True)
    output_price = serializers.FloatField(allow_null=True)

    class Meta:
        model = AiModel
        fields = (
            "id",
            "name",
            "provider",
            "context_window_size",
            "max_output_tokens",
            "input_price",
            "output_price",
            "supports_tools",
            "supports_images",
            "policy",
            "is_default",
        )
        read_only_fields = fields


class NewTokenSerializer(StrictSerializer):
    """How long a new token lives."""

    expires_in_days = StrictIntegerField(
        min_value=1,
        max_value=3650,
        allow_null=True,
        required=False,
        help_text="Null: until it is revoked.",
    )


class TokenSerializer(serializers.Serializer[Any]):
    """An API token, of which only the beginning is kept readable."""

    id = serializers.CharField(source="token_key", help_text="The token's first characters.")
    created_at = serializers.DateTimeField(source="created")
    expires_at = serializers.DateTimeField(source="expiry", allow_null=True)


class CreatedTokenSerializer(TokenSerializer):
    """A new token; `token` is shown this once."""

    token = serializers.CharField()


class HitSerializer(serializers.Serializer[Any]):
    """A message that holds the words, and what stands around them."""

    session = serializers.UUIDField(source="session_id")
    message = serializers.IntegerField(source="message_id")
    seq = serializers.IntegerField()
    role = serializers.ChoiceField(Message.Role.choices)
    snippet = serializers.CharField()
    created_at = serializers.DateTimeField()


class HitsSerializer(serializers.Serializer[Any]):
    """The best hits, all on one page."""

    results = HitSerializer(many=True)
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)
