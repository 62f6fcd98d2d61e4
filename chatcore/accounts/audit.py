"""Tell apps of what people do: an act, on which object, when and from where.

What an app writes belongs into the transaction of the act: both are stored, or neither. A read is
told before it is answered.
"""

from dataclasses import dataclass
from typing import Any

from allauth.core import context
from django.db import models
from django.http import HttpRequest

from chatcore.extension import get_extensions


@dataclass(frozen=True, kw_only=True)
class Act:
    """One act of a person or of a command, without contents."""

    act: str  # as session.rewound or sign_in.failed
    actor_id: int | None  # None: nobody was signed in, or a command of the server did it
    object_type: str
    object_id: str
    detail: str
    address: str
    request_id: str


def record(
    act: str,
    *,
    target: models.Model | None = None,
    object_type: str = "",
    object_id: object = "",
    detail: str = "",
    actor: Any = None,
    request: HttpRequest | None = None,
) -> None:
    """Tell apps of an act. Without a request, the one that is answered in this thread counts.

    `detail` has names of fields and numbers, never a text that somebody wrote.
    """
    request = request or context.request
    if actor is None:
        actor = getattr(request, "user", None)
    if target is not None:
        object_type, object_id = target._meta.label_lower, target.pk
    told_act = Act(
        act=act,
        actor_id=actor.pk if actor is not None and actor.is_authenticated else None,
        object_type=object_type,
        object_id=str(object_id or "")[:64],
        detail=detail,
        address=_get_address(request),
        request_id=str(getattr(request, "request_id", "") or "")[:64],
    )
    for extension in get_extensions():
        extension.record_act(told_act)


def _get_address(request: HttpRequest | None) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")[:45] if request is not None else ""
