"""Parameters for the language model: those that every provider knows are checked here."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatcore.base.rest.fields import JsonObjectField
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.providers.params import (
    PARAM_RULES,
    RESERVED_NAMES,
    find_bad_values,
    find_missing_room,
)
from models_registry.models import AiModel


def require_room(params: Mapping[str, object], model: AiModel, **field_names: str) -> None:
    """Raise the 400 problem if the thoughts would leave the answer no room.

    `field_names` are the client's names of parameters, where they have others.
    """
    for name, detail in find_missing_room(params, model).items():
        raise InvalidFieldError(field_names.get(name, name), detail)


@extend_schema_field(
    {
        "type": "object",
        "properties": {name: rule.schema for name, rule in PARAM_RULES.items()},
        "propertyNames": {"not": {"enum": sorted(RESERVED_NAMES)}},
        "additionalProperties": True,
        "description": (
            "Parameters for the language model. Which of them may be set depends on its protocol; "
            "an operator can allow others for a provider."
        ),
    }
)
class ParamsField(JsonObjectField):
    """Parameters that are sent to the provider with the messages."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the parameters without nulls. Raises ValidationError that names the wrong ones.

        The model is not known here, so names are checked by the serializer.
        """
        values = super().to_internal_value(data)
        params = {name: value for name, value in values.items() if value is not None}
        errors = find_bad_values(params)
        if errors:
            raise serializers.ValidationError({name: [detail] for name, detail in errors.items()})
        return params
