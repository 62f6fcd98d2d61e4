"""Tokens for the printed sign-in link. A token is signed, works once and expires in 15 minutes."""

import hashlib
import secrets

from django.contrib.auth.models import User
from django.core import signing
from django.core.cache import cache
from django.urls import reverse

SALT = "chatcore.web.sign_in"
LIFETIME_SECONDS = 15 * 60
ADMINISTRATOR_NAME = "admin"


def issue_token(user: User) -> str:
    """Return a new token for a user.

    Only its hash is stored, so that who reads the cache cannot sign in with what is there. Raises
    RedisError if the cache is in Redis and away.
    """
    token = signing.dumps([user.pk, secrets.token_urlsafe(16)], salt=SALT)
    _require_shared_cache()
    cache.set(_build_cache_key(token), user.pk, LIFETIME_SECONDS)
    return token


def build_link_path(user: User) -> str:
    """Return the path of a new link that signs the user in. Raises RedisError as above."""
    return reverse("login_once", args=[issue_token(user)])


def find_user(token: str) -> User | None:
    """Return the user whom a token would sign in now; it is not used up.

    Returns None if the token is forged, expired or used, or if the user is not active any more.
    Raises RedisError if the cache is in Redis and away.
    """
    try:
        pk, _ = signing.loads(token, salt=SALT, max_age=LIFETIME_SECONDS)
    except signing.BadSignature:
        return None
    _require_shared_cache()
    if cache.get(_build_cache_key(token)) is None:
        return None
    return User.objects.filter(pk=pk, is_active=True).first()


def redeem_token(token: str) -> User | None:
    """Use up a token and return its user; None if it signs nobody in, as `find_user` says."""
    user = find_user(token)
    # Two simultaneous uses both come here, but only one of them deletes the row and signs in.
    return user if user is not None and cache.delete(_build_cache_key(token)) else None


def ensure_administrator() -> User | None:
    """Return the first active superuser, and create one in a new database.

    Returns None if an operator has switched off all superusers.
    """
    user = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user or User.objects.filter(username=ADMINISTRATOR_NAME).exists():
        return user
    return User.objects.create_superuser(ADMINISTRATOR_NAME, password=None)


def _require_shared_cache() -> None:
    """Raise RedisError if the cache is away and goes on in the memory of this process alone."""
    require_server = getattr(cache, "require_server", None)
    if require_server:
        require_server()


def _build_cache_key(token: str) -> str:
    return f"sign-in-{hashlib.sha256(token.encode()).hexdigest()}"
