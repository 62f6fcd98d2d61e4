"""The language models that a user may use."""

from typing import Any

from django.db.models import Q

from chatcore.providers.errors import ProviderError
from chatcore.rights.names import WILDCARD, Kind, list_allowed
from models_registry.models import AiModel, AiModelQuerySet


class ModelNotAllowed(ProviderError):
    """The user may not use this model, or may not any more; a turn that waited fails with it."""

    type = "model_not_allowed"
    status = 403


def select_models(user_id: Any) -> AiModelQuerySet:
    """Select the models that a user may use, also those that are out of service.

    To the user no other model exists.
    """
    models: AiModelQuerySet = AiModel.objects.all()
    for patterns in list_allowed(user_id, Kind.MODEL).limits:
        is_allowed = Q(pk__in=[])
        for pattern in patterns:
            is_allowed |= _match_pattern(pattern)
        models = models.filter(is_allowed)
    return models


def has_usable_models() -> bool:
    """Return True if there is a model in service, whoever may use it."""
    return AiModel.objects.filter_usable().exists()


def require_model(user_id: Any, model: AiModel) -> None:
    """Raise ModelNotAllowed if a user may not use the model."""
    if str(model) not in list_allowed(user_id, Kind.MODEL):
        raise ModelNotAllowed(
            f"You may not use the model {model}, or may not any more. Choose another one for this"
            " conversation; nothing of it is lost."
        )


def _match_pattern(pattern: str) -> Q:
    provider, _, name = pattern.partition("/")
    if pattern.endswith(WILDCARD) and not name:
        return Q(provider__name__startswith=provider.removesuffix(WILDCARD))
    if name.endswith(WILDCARD):
        return Q(provider__name=provider, name__startswith=name.removesuffix(WILDCARD))
    return Q(provider__name=provider, name=name)
