"""Tokens for the printed sign-in link. A token is signed, works once and expires in 15 minutes."""

import hashlib
import secrets

from django.contrib.auth.models import User
from django.core import signing
from django.core.cache import cache

SALT = "chatcore.web.sign_in"
LIFETIME_SECONDS = 15 * 60
ADMINISTRATOR_NAME = "admin"


def issue_token(user: User) -> str:
    """Return a new token for a user.

    Only its hash is stored, so that who reads the cache cannot sign in with what is there.
    """
    token = signing.dumps([user.pk, secrets.token_urlsafe(16)], salt=SALT)
    cache.set(_build_cache_key(token), user.pk, LIFETIME_SECONDS)
    return token


def redeem_token(token: str) -> User | None:
    """Use up a token and return its user.

    Returns None if the token is forged, expired or used, or if the user is not active any more.
    """
    try:
        pk, _ = signing.loads(token, salt=SALT, max_age=LIFETIME_SECONDS)
    except signing.BadSignature:
        return None
    # Two simultaneous uses both come here, but only one of them deletes the row and signs in.
    if not cache.delete(_build_cache_key(token)):
        return None
    return User.objects.filter(pk=pk, is_active=True).first()


def ensure_administrator() -> User | None:
    """Return the first active superuser, and create one in a new database.

    Returns None if an operator has switched off all superusers.
    """
    user = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user or User.objects.filter(username=ADMINISTRATOR_NAME).exists():
        return user
    return User.objects.create_superuser(ADMINISTRATOR_NAME, password=None)


def _build_cache_key(token: str) -> str:
    return f"sign-in-{hashlib.sha256(token.encode()).hexdigest()}"
