"""Tokens for sign-in links: the printed one, and one for another device of a signed-in person.

A token is signed, works once, and expires in 15 minutes, with a change of the password, and with
the browser that made it.
"""

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core import signing
from django.core.cache import cache
from django.urls import reverse
from django.utils.crypto import constant_time_compare

SALT = "chatcore.web.sign_in"
LIFETIME_SECONDS = 15 * 60
ADMINISTRATOR_NAME = "admin"


def issue_token(user: User, *, device: int | None = None) -> str:
    """Return a new token for a user, made by the browser that a row of UserSession names.

    Only its hash is stored, so that who reads the cache cannot sign in with what is there. Raises
    RedisError if the cache is in Redis and away.
    """
    token = signing.dumps(
        [user.pk, secrets.token_urlsafe(16), _digest_password(user), device], salt=SALT
    )
    _require_shared_cache()
    cache.set(_build_cache_key(token), user.pk, LIFETIME_SECONDS)
    return token


def build_link_path(user: User, *, device: int | None = None) -> str:
    """Return the path of a new link that signs the user in. Raises RedisError as above."""
    return reverse("login_once", args=[issue_token(user, device=device)])


def keep_address(address: str) -> None:
    """Note where people reach the server on this machine."""
    with suppress(OSError):  # a folder that cannot be written to costs nobody a start
        _get_address_path().write_text(address)


def load_address() -> str:
    """Return where `serve` was reached last on this machine, or where it is by default."""
    try:
        return _get_address_path().read_text()
    except OSError:
        return "http://127.0.0.1:8000"


def _get_address_path() -> Path:
    return settings.DATA_DIR / "address"


def find_user(token: str) -> User | None:
    """Return the user whom a token would sign in now; it is not used up.

    Returns None if the token is forged, expired or used, if the user is not active any more, has
    another password by now, or has signed the browser out that made it. Raises RedisError if the
    cache is in Redis and away.
    """
    try:
        pk, _, digest, device = signing.loads(token, salt=SALT, max_age=LIFETIME_SECONDS)
    except (signing.BadSignature, ValueError):  # one of an earlier version has fewer parts
        return None
    _require_shared_cache()
    if cache.get(_build_cache_key(token)) is None:
        return None
    if device is not None and not UserSession.objects.filter(pk=device, user=pk).exists():
        return None
    user = get_user_model()._default_manager.filter(pk=pk, is_active=True).first()
    return user if user and constant_time_compare(digest, _digest_password(user)) else None


def is_of_browser(token: str) -> bool:
    """Return whether a browser made a valid token, which stands for a password and no more."""
    return signing.loads(token, salt=SALT)[-1] is not None


def redeem_token(token: str) -> User | None:
    """Use up a token and return its user; None if it signs nobody in, as `find_user` says."""
    user = find_user(token)
    # Two simultaneous uses both come here, but only one of them deletes the row and signs in.
    return user if user is not None and cache.delete(_build_cache_key(token)) else None


def ensure_administrator() -> User | None:
    """Return the first active superuser, and create one in a new database.

    Returns None if an operator has switched off all superusers.
    """
    user = (
        get_user_model()
        ._default_manager.filter(is_superuser=True, is_active=True)
        .order_by("pk")
        .first()
    )
    if user or get_user_model()._default_manager.filter(username=ADMINISTRATOR_NAME).exists():
        return user
    return get_user_model()._default_manager.create_superuser(ADMINISTRATOR_NAME, password=None)


def _digest_password(user: User) -> str:
    return hashlib.sha256(user.get_session_auth_hash().encode()).hexdigest()[:32]


def _require_shared_cache() -> None:
    """Raise RedisError if the cache is away and goes on in the memory of this process alone."""
    require_server = getattr(cache, "require_server", None)
    if require_server:
        require_server()


def _build_cache_key(token: str) -> str:
    return f"sign-in-{hashlib.sha256(token.encode()).hexdigest()}"
