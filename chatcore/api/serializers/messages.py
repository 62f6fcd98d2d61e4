"""Messages in the REST API: stored and imported ones."""

from rest_framework import serializers

from chatcore.api.serializers.attachments import AttachmentSerializer
from chatcore.base.rest.fields import StrictSerializer, StrictTextField, body_rules
from chatcore.models import Message, Session
from chatcore.transfer import formats
from chatcore.turns import versions


class ToolCallSerializer(StrictSerializer):
    """A tool call; `arguments` is the JSON text that the model wrote."""

    id = StrictTextField(max_length=255)
    name = StrictTextField(max_length=128)
    arguments = StrictTextField(allow_blank=True)


class MessageSerializer(serializers.ModelSerializer[Message]):
    """A stored message."""

    # Needs what `build_message_context` returns as its context.
    tool_calls = ToolCallSerializer(many=True)
    attachments = AttachmentSerializer(many=True)
    replaces = serializers.IntegerField(
        source="replaces_id",
        allow_null=True,
        help_text="The message that this one is another version of.",
    )
    finish_reason = serializers.ChoiceField(
        choices=Message.FinishReason.choices,
        allow_blank=True,
        read_only=True,
        help_text="Why the model ended its answer; empty: not known, or not ended.",
    )
    cost = serializers.FloatField(
        allow_null=True,
        help_text="What its call cost, by the prices at that time; null: unknown.",
    )
    context_trimmed = serializers.BooleanField(
        help_text=(
            "True of an answer whose request had to leave older messages out, or shorten results "
            "of tools, because it did not fit. It stays true of this answer."
        )
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
            "finish_reason",
            "finish_detail",
            "model",
            "pinned",
            "token_count_input",
            "token_count_output",
            "token_count_cache_read",
            "token_count_cache_write",
            "cost",
            "token_estimate",
            "original_chars",
            "context_trimmed",
            "replaces",
            "versions",
            "superseded",
            "compacted",
            "created_at",
        )
        read_only_fields = fields

    def get_versions(self, message: Message) -> list[int]:
        """The ids of all versions of this message, oldest first; empty if it is the only one."""
        version_ids: list[int] = self.context.get("versions", {}).get(message.pk, [])
        return version_ids

    def get_superseded(self, message: Message) -> bool:
        """True if an edit or another answer replaced it: it stays stored and is not sent."""
        return message.branch is not None

    def get_compacted(self, message: Message) -> bool:
        """True if the summary covers it, so that it is not sent any more."""
        return message.seq < (self.context.get("boundary") or 0)


@body_rules()
class ImportedMessageSerializer(serializers.Serializer[object]):
    """A message of another system's history.

    System messages are stored and not sent: the session's system_prompt is sent instead.
    """

    role = serializers.ChoiceField(Message.Role.choices)
    content = serializers.CharField(required=False, allow_blank=True)
    tool_calls = ToolCallSerializer(many=True, required=False)
    tool_call_id = serializers.CharField(
        required=False, help_text="For a tool result: the id of the earlier call that it answers."
    )
    tool_name = serializers.CharField(required=False)
    is_error = serializers.BooleanField(required=False)
    created_at = serializers.DateTimeField(required=False)


@body_rules()
class ImportSerializer(serializers.Serializer[Message]):
    """At most 10,000 messages, oldest first."""

    # For the OpenAPI document only: `transfer.reader` validates, and far faster.
    messages = ImportedMessageSerializer(many=True)
    format = serializers.ChoiceField(
        list(formats.FORMATS),
        required=False,
        help_text="Whose message format it is.",
    )


class ImportedSerializer(serializers.Serializer[object]):
    """What an import added."""

    imported = serializers.IntegerField()
    first_seq = serializers.IntegerField(allow_null=True)
    last_seq = serializers.IntegerField(allow_null=True)
    message_count = serializers.IntegerField()


def build_message_context(session: Session) -> dict[str, object]:
    """Build the context that MessageSerializer needs: the session's boundary and its versions."""
    return {
        "boundary": session.compact_boundary_seq,
        "versions": versions.map_message_versions(session.pk),
    }
