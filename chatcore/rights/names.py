"""The names that groups allow their members, for each kind of thing."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Q

from chatcore.models import GroupRights, Session

WILDCARD = "*"


class Kind(StrEnum):
    """What rights are about; the words are those of GroupRights' columns."""

    MODEL = "model"
    POLICY = "policy"
    TOOL = "tool"


_SWITCHES = {Kind.MODEL: "limits_models", Kind.POLICY: "limits_policies", Kind.TOOL: "limits_tools"}


@dataclass(frozen=True)
class AllowedNames:
    """The names of one kind that somebody may use; None: all of them."""

    patterns: frozenset[str] | None = None

    def __contains__(self, name: str) -> bool:
        """Return True if the name may be used."""
        if self.patterns is None or name in self.patterns:
            return True
        return any(
            name.startswith(pattern.removesuffix(WILDCARD))
            for pattern in self.patterns
            if pattern.endswith(WILDCARD)
        )


EVERYTHING = AllowedNames()


def list_allowed(user_id: Any, kind: Kind) -> AllowedNames:
    """Return what a user may use: what any of the groups allows that say something about it.

    Where no group says anything, that is everything, or nothing with CHATCORE's ALLOW_BY_DEFAULT
    off. A superuser may use everything. This takes one query where no group limits anybody.
    """
    # In a list, because nobody (None) would otherwise be of each group without members.
    return _collect(Q(group__user__in=[user_id]), Q(pk=user_id), kind)


def list_allowed_in(session_id: UUID, kind: Kind) -> AllowedNames:
    """Return what the owner of a session may use there."""
    owner = Session.objects.filter(pk=session_id).values("owner")
    return _collect(Q(group__user__in=owner), Q(pk__in=owner), kind)


def _collect(is_of_group: Q, is_user: Q, kind: Kind) -> AllowedNames:
    limits = GroupRights.objects.filter(**{_SWITCHES[kind]: True})
    lists: Iterable[list[str]] = []
    if limits.exists():  # in most places no group limits anybody, and this is quickly asked
        lists = list(limits.filter(is_of_group).values_list(f"{kind}_names", flat=True))
    if not lists and settings.CHATCORE["ALLOW_BY_DEFAULT"]:
        return EVERYTHING
    if get_user_model().objects.filter(is_user, is_superuser=True).exists():
        return EVERYTHING
    return AllowedNames(frozenset(name for names in lists for name in names))
