"""What a user may use: language models, compaction policies and tools.

Whoever looks one of these up for a user asks here; a test reads the sources and holds that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q

from chatcore.context.compactor import get_compactor
from chatcore.extension import get_extensions
from chatcore.models import Session, UserPreferences
from chatcore.providers.errors import ProviderError
from models_registry.models import AiModel, AiModelQuerySet

WILDCARD = "*"


class Kind(StrEnum):
    """What rights are about."""

    MODEL = "model"
    POLICY = "policy"
    TOOL = "tool"


@dataclass(frozen=True)
class AllowedNames:
    """The names of one kind that somebody may use: those that each of the limits has."""

    limits: tuple[frozenset[str], ...] = ()

    def __contains__(self, name: str) -> bool:
        """Return True if the name may be used."""
        return all(_matches(name, patterns) for patterns in self.limits)


EVERYTHING = AllowedNames()


def list_allowed(user_id: object, kind: Kind) -> AllowedNames:
    """Return what a user may use, as the installed apps limit it.

    Where none says anything, that is everything, or nothing with CHATCORE's ALLOW_BY_DEFAULT
    off. A superuser may use everything.
    """
    # In a list, because nobody (None) would otherwise be of each group without members.
    return _collect([user_id], kind)


def list_allowed_tools(user_id: object, *, has_limits: bool) -> AllowedNames:
    """Return the tools that a user may use; no query where no app limits anybody's.

    `has_limits` is what the statements of a context say (Extension.tool_limits_sql).
    """
    if not has_limits and settings.CHATCORE["ALLOW_BY_DEFAULT"]:
        return EVERYTHING
    return list_allowed(user_id, Kind.TOOL)


def list_allowed_in(session_id: UUID, kind: Kind) -> AllowedNames:
    """Return what the owner of a session may use there."""
    return _collect(Session.objects.filter(pk=session_id).values("owner"), kind)


def _collect(user_ids: Any, kind: Kind) -> AllowedNames:
    answers = [each.limit_names(user_ids, kind) for each in get_extensions("limit_names")]
    limits = tuple(names for names in answers if names is not None)
    if not limits and settings.CHATCORE["ALLOW_BY_DEFAULT"]:
        return EVERYTHING
    if get_user_model().objects.filter(pk__in=user_ids, is_superuser=True).exists():
        return EVERYTHING
    return AllowedNames(limits or (frozenset(),))


def _matches(name: str, patterns: frozenset[str]) -> bool:
    return name in patterns or any(
        name.startswith(pattern.removesuffix(WILDCARD))
        for pattern in patterns
        if pattern.endswith(WILDCARD)
    )


class ModelNotAllowed(ProviderError):
    """The user may not use this model, or may not any more; a turn that waited fails with it."""

    type = "model_not_allowed"
    status = 403


def select_models(user_id: object) -> AiModelQuerySet:
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


def find_default_model(user_id: Any) -> AiModel | None:
    """Return the model of a user's new sessions: their own choice, else the installation's."""
    is_own = Exists(UserPreferences.objects.filter(user_id=user_id, default_model=OuterRef("pk")))
    usable_models = select_models(user_id).filter_usable().annotate(is_own=is_own)
    return usable_models.order_by("-is_own", "-is_default", "id").first()


def has_usable_models() -> bool:
    """Return True if there is a model in service, whoever may use it."""
    return AiModel.objects.filter_usable().exists()


def require_model(user_id: object, model: AiModel) -> None:
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


def select_policies(user_id: object, names: Iterable[str]) -> list[str]:
    """Return those of the policies that a user may choose, in the same order."""
    allowed_names = list_allowed(user_id, Kind.POLICY)
    return [name for name in names if name in allowed_names]


def accepts_policy(user_id: object, name: str) -> bool:
    """Return True if there is a policy of this name that the user may choose.

    Without a compactor there are none, and none acts: any name may be noted.
    """
    names = get_compactor().list_policies()
    return (not names or name in names) and bool(select_policies(user_id, [name]))
