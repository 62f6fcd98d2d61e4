"""The names of each kind of thing that somebody may use."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model

from chatcore.extension import get_extensions
from chatcore.models import Session

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


def list_allowed(user_id: Any, kind: Kind) -> AllowedNames:
    """Return what a user may use, as the installed apps limit it.

    Where none says anything, that is everything, or nothing with CHATCORE's ALLOW_BY_DEFAULT
    off. A superuser may use everything.
    """
    # In a list, because nobody (None) would otherwise be of each group without members.
    return _collect([user_id], kind)


def list_allowed_in(session_id: UUID, kind: Kind) -> AllowedNames:
    """Return what the owner of a session may use there."""
    return _collect(Session.objects.filter(pk=session_id).values("owner"), kind)


def _collect(user_ids: Any, kind: Kind) -> AllowedNames:
    answers = [extension.limit_names(user_ids, kind) for extension in get_extensions()]
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
