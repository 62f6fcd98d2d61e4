"""Write the audit log, and delete what is older than its retention.

An entry belongs into the transaction of the act: both are stored, or neither. A read is noted
before it is answered.
"""

from datetime import timedelta
from typing import Any

from allauth.account import signals as account_signals
from allauth.core import context
from allauth.mfa import signals as mfa_signals
from django.conf import settings
from django.contrib.auth import signals as auth_signals
from django.contrib.auth.models import User
from django.db import models
from django.http import HttpRequest

from chatcore.databases.clock import read_clock
from chatcore.models import AuditEntry

MAX_DETAIL = AuditEntry._meta.get_field("detail").max_length or 0
BATCH_ROWS = 250


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
    """Add an entry. Without a request, the one that is being answered in this thread counts.

    `detail` has names of fields and numbers, never a text that somebody wrote.
    """
    request = request or context.request
    if actor is None:
        actor = getattr(request, "user", None)
    if target is not None:
        object_type, object_id = target._meta.label_lower, target.pk
    AuditEntry.objects.create(
        act=act,
        actor_id=actor.pk if actor is not None and actor.is_authenticated else None,
        object_type=object_type,
        object_id=str(object_id or "")[:64],
        detail=detail[:MAX_DETAIL],
        address=_get_address(request),
        request_id=str(getattr(request, "request_id", "") or "")[:64],
    )


def prune_entries() -> int:
    """Delete the entries whose time is over. Returns how many."""
    if not settings.AUDIT_DAYS:
        return 0
    old_rows = AuditEntry.objects.filter(at__lt=read_clock() - timedelta(days=settings.AUDIT_DAYS))
    count = 0
    while ids := list(old_rows.order_by("at").values_list("pk", flat=True)[:BATCH_ROWS]):
        rows = AuditEntry.objects.filter(pk__in=ids)
        # `delete()` refuses, of entries and of queries, for everybody else. There is no public way.
        count += int(rows._raw_delete(rows.db))
    return count


def connect() -> None:
    """Note what Django and django-allauth announce about signing in."""
    auth_signals.user_logged_in.connect(_record_sign_in, dispatch_uid="audit.in")
    auth_signals.user_logged_out.connect(_record_sign_out, dispatch_uid="audit.out")
    auth_signals.user_login_failed.connect(_record_failure, dispatch_uid="audit.failed")
    mfa_signals.authenticator_added.connect(_record_factor_added, dispatch_uid="audit.mfa_added")
    mfa_signals.authenticator_removed.connect(_record_factor_removed, dispatch_uid="audit.mfa_gone")
    mfa_signals.authenticator_reset.connect(_record_codes_made, dispatch_uid="audit.mfa_codes")
    account_signals.user_signed_up.connect(_record_sign_up, dispatch_uid="audit.sign_up")
    account_signals.email_changed.connect(_record_email, dispatch_uid="audit.email")


def _get_address(request: HttpRequest | None) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")[:45] if request is not None else ""


def _record_sign_in(*, request: HttpRequest, user: Any, **_: Any) -> None:
    record("sign_in.succeeded", actor=user, target=user, request=request)


def _record_sign_out(*, request: HttpRequest, user: Any, **_: Any) -> None:
    if user is not None:
        record("sign_out", actor=user, target=user, request=request)


def _record_failure(*, credentials: dict[str, Any], request: Any = None, **_: Any) -> None:
    # What was typed as a name may be a password, so only the number of a known user is stored.
    name = str(credentials.get("username") or "").replace("\0", "")
    record("sign_in.failed", target=User.objects.filter(username=name).first(), request=request)


def _record_factor_added(*, request: HttpRequest, user: Any, authenticator: Any, **_: Any) -> None:
    record("second_factor.added", target=user, detail=authenticator.type, request=request)


def _record_factor_removed(
    *, request: HttpRequest, user: Any, authenticator: Any, **_: Any
) -> None:
    record("second_factor.removed", target=user, detail=authenticator.type, request=request)


def _record_codes_made(*, request: HttpRequest, user: Any, **_: Any) -> None:
    record("second_factor.codes_made", target=user, request=request)


def _record_sign_up(*, request: HttpRequest, user: Any, **_: Any) -> None:
    record("account.made", actor=user, target=user, request=request)


def _record_email(*, request: HttpRequest, user: Any, **_: Any) -> None:
    record("email.changed", target=user, request=request)
