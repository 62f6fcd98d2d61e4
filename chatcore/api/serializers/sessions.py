"""Sessions in the REST API."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatcore.accounts.rights import (
    Kind,
    accepts_policy,
    find_default_model,
    list_allowed,
    select_models,
)
from chatcore.api.params import ParamsField
from chatcore.api.serializers.projects import ProjectField
from chatcore.base.actors import Person
from chatcore.base.rest import limits
from chatcore.base.rest.fields import (
    RatioField,
    StrictBooleanField,
    StrictSerializer,
    StrictTextField,
)
from chatcore.base.visible_text import is_visible
from chatcore.context.compactor import get_compactor
from chatcore.models import Session
from chatcore.models.session import MAX_THRESHOLD_TOKENS
from chatcore.providers.params import find_missing_room, find_unknown_names
from chatcore.tools import registry as tool_registry
from chatcore.tools.mcp import catalog as mcp_catalog
from models_registry.models import AiModel

READ_ONLY_FIELDS = (
    "external_id",
    "forked_from",
    "forked_from_seq",
    "parent",
    "compacted_summary",
    "compact_boundary_seq",
    "compact_boundary_timestamp",
    "context_version",
    "message_count",
    "created_at",
    "updated_at",
)


@extend_schema_field(str)
class ModelNameField(serializers.Field):
    """A language model, as `name` or `provider/name`; always shown as `provider/name`."""

    default_error_messages = {
        "unknown": "There is no usable language model of this name.",
        "invalid": "Not a valid string.",
    }

    def to_internal_value(self, data: object) -> AiModel:
        """Return the usable model of that name. Raises ValidationError if there is none."""
        if not isinstance(data, str):
            self.fail("invalid")
        model = select_models(self.context["request"].user.pk).find_by_name(data)
        if model is None:
            self.fail("unknown")
        return model

    def to_representation(self, value: AiModel) -> str:
        """Return `provider/name`, which is never ambiguous."""
        return str(value)


class SessionSerializer(StrictSerializer, serializers.ModelSerializer[Session]):
    """A conversation, and what the model sees of it now."""

    title = StrictTextField(max_length=200, allow_blank=True, required=False, trim_whitespace=True)
    model = ModelNameField(allow_null=True, required=False)
    system_prompt = StrictTextField(
        max_bytes=limits.MESSAGE_BYTES, allow_blank=True, required=False
    )
    project = ProjectField(allow_null=True, required=False)
    policy = StrictTextField(max_length=64, allow_blank=True, required=False)
    auto_compact = StrictBooleanField(required=False)
    compact_threshold = RatioField(
        max_value=MAX_THRESHOLD_TOKENS,
        allow_null=True,
        required=False,
        help_text=(
            "In place of the policy's trigger.threshold: a share of the context window, or above "
            "1 a number of tokens, with which the protected tail shrinks."
        ),
    )
    tools = serializers.ListField(
        child=StrictTextField(max_length=128), allow_null=True, required=False, max_length=256
    )
    params = ParamsField(required=False)
    pinned = StrictBooleanField(required=False)
    archived = StrictBooleanField(required=False)
    temporary = StrictBooleanField(
        required=False,
        help_text=(
            "In no list and no search, and deleted some hours after its last use. Chosen when the "
            "session is created; false keeps it afterwards."
        ),
    )

    class Meta:
        model = Session
        fields = (
            "id",
            "title",
            "model",
            "system_prompt",
            "project",
            "policy",
            "auto_compact",
            "compact_threshold",
            "tools",
            "params",
            "pinned",
            "archived",
            "temporary",
            *READ_ONLY_FIELDS,
        )
        read_only_fields = READ_ONLY_FIELDS

    def validate(self, attrs: dict[str, Any]) -> dict[str, object]:
        """Refuse what does not fit the session's model and policy: its threshold, its params."""

        def get_new_value(name: str) -> Any:
            return attrs[name] if name in attrs else getattr(self.instance, name, None)

        model = get_new_value("model")
        needs_model = bool(attrs.get("params")) or attrs.get("compact_threshold") is not None
        if needs_model and "model" not in attrs and self.instance is None:
            model = find_default_model(self.context["request"].user.pk)
        threshold = get_new_value("compact_threshold")
        is_affected = not attrs.keys().isdisjoint({"compact_threshold", "policy", "model"})
        if threshold is not None and is_affected:
            policy = get_compactor().choose_policy(
                get_new_value("policy") or "", getattr(model, "policy", "")
            )
            # A smaller model may come later: then its window bounds the threshold.
            policy.validate_threshold(
                threshold, model=model if "compact_threshold" in attrs else None
            )
        if attrs.get("params"):
            _check_params(attrs["params"], model)
        return attrs

    def validate_title(self, title: str) -> str:
        """Take a title that nobody can see for none."""
        return title if is_visible(title) else ""

    def validate_temporary(self, is_temporary: bool) -> bool:
        """Refuse to make a session temporary that was created as any other."""
        if is_temporary and self.instance is not None and not self.instance.temporary:
            raise serializers.ValidationError("It is chosen when the session is created.")
        return is_temporary

    def validate_policy(self, name: str) -> str:
        """Refuse a compaction policy that does not exist."""
        if name and not accepts_policy(self._get_owner().pk, name):
            raise serializers.ValidationError("There is no compaction policy of this name.")
        return name

    def _get_owner(self) -> Person:
        """Return whose rights hold: the owner's, also where an operator edits the session."""
        request = self.context.get("request")
        if request:
            return request.user
        if self.instance is None or self.instance.owner_id is None:
            return AnonymousUser()
        return self.instance.owner

    def validate_tools(self, names: list[str] | None) -> list[str] | None:
        """Refuse tools that do not exist."""
        owner = self._get_owner()
        allowed_names = list_allowed(owner.pk, Kind.TOOL)
        known_tools = tool_registry.build_definitions(allowed_names=allowed_names)
        known_names = {tool.name for tool in known_tools}
        if any(mcp_catalog.is_tool_name(name) for name in names or ()):
            mcp_tools = mcp_catalog.list_available_tools(owner)
            known_names |= {tool.definition.name for tool in mcp_tools}
        unknown_names = sorted(set(names or ()) - known_names)
        if unknown_names:
            raise serializers.ValidationError(
                f"There is no tool called {', '.join(unknown_names)}."
            )
        return names


def _check_params(params: Mapping[str, object], model: AiModel | None) -> None:
    errors = find_unknown_names(params, model.provider if model else None)
    if model is not None and not errors:
        errors = find_missing_room(params, model)
    if errors:
        details = {name: [detail] for name, detail in errors.items()}
        raise serializers.ValidationError({"params": details})
