"""Signing in by a printed link: a signed token that works once, for 15 minutes."""

import hashlib
import secrets

from django.contrib.auth.models import User
from django.core import signing
from django.core.cache import cache

SALT = "chatcore.web.sign_in"
LIFETIME_SECONDS = 15 * 60
ADMINISTRATOR_NAME = "admin"


def issue_token(user: User) -> str:
    """A token for `user`. Only its hash is stored, so the store cannot sign anybody in."""
    token = signing.dumps([user.pk, secrets.token_urlsafe(16)], salt=SALT)
    cache.set(_build_cache_key(token), user.pk, LIFETIME_SECONDS)
    return token


def redeem_token(token: str) -> User | None:
    """The active user the token signs in; None when it is forged, too old or was used before. It works once."""
    try:
        pk, _ = signing.loads(token, salt=SALT, max_age=LIFETIME_SECONDS)
    except signing.BadSignature:
        return None
    if not cache.delete(
        _build_cache_key(token)
    ):  # one of two simultaneous uses deletes the row, and only that one signs in
        return None
    return User.objects.filter(pk=pk, is_active=True).first()


def ensure_administrator() -> User | None:
    """The first active superuser, made on a fresh database; None when an operator has switched them all off."""
    user = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user or User.objects.filter(username=ADMINISTRATOR_NAME).exists():
        return user
    return User.objects.create_superuser(ADMINISTRATOR_NAME, password=None)


def _build_cache_key(token: str) -> str:
    return f"sign-in-{hashlib.sha256(token.encode()).hexdigest()}"
