"""Note what Django and django-allauth announce about signing in."""

from collections.abc import Mapping
from typing import Any

from allauth.account import signals as account_signals
from allauth.mfa import signals as mfa_signals
from django.contrib.auth import get_user_model
from django.contrib.auth import signals as auth_signals
from django.contrib.auth.models import User
from django.http import HttpRequest

from chatcore.accounts.audit import record


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


def _record_sign_in(*, request: HttpRequest, user: User, **_: object) -> None:
    record("sign_in.succeeded", actor=user, target=user, request=request)


def _record_sign_out(*, request: HttpRequest, user: User | None, **_: object) -> None:
    if user is not None:
        record("sign_out", actor=user, target=user, request=request)


def _record_failure(
    *, credentials: Mapping[str, object], request: HttpRequest | None = None, **_: object
) -> None:
    # What was typed as a name may be a password, so only the number of a known user is stored.
    name = str(credentials.get("username") or "").replace("\0", "")
    record(
        "sign_in.failed",
        target=get_user_model()._default_manager.filter(username=name).first(),
        request=request,
    )


def _record_factor_added(
    *, request: HttpRequest, user: User, authenticator: Any, **_: object
) -> None:
    record("second_factor.added", target=user, detail=authenticator.type, request=request)


def _record_factor_removed(
    *, request: HttpRequest, user: User, authenticator: Any, **_: object
) -> None:
    record("second_factor.removed", target=user, detail=authenticator.type, request=request)


def _record_codes_made(*, request: HttpRequest, user: User, **_: object) -> None:
    record("second_factor.codes_made", target=user, request=request)


def _record_sign_up(*, request: HttpRequest, user: User, **_: object) -> None:
    record("account.made", actor=user, target=user, request=request)


def _record_email(*, request: HttpRequest, user: User, **_: object) -> None:
    record("email.changed", target=user, request=request)
