"""Who has sent a request, and by which token or browser session; and whether that still holds."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from knox.crypto import hash_token
from knox.models import AuthToken

from chatcore.base.rest.auth import is_valid_token

AT_ONCE = 500  # asked for in one query
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sender:
    """What a request was signed in by: a token, by its digest, or the session of a browser."""

    token_digest: str = ""
    session_key: str = ""


def get_sender(request: HttpRequest) -> Sender | None:
    """Return the sender of a request that is signed in; None if it is not."""
    token = getattr(request, "auth", None)
    if isinstance(token, AuthToken):
        return Sender(token_digest=token.digest)
    session_key = getattr(getattr(request, "session", None), "session_key", None)
    return Sender(session_key=session_key) if session_key else None


def find_token_sender(authorization: str) -> Sender:
    """Return the sender that a header names which was accepted: `Bearer TOKEN`."""
    return Sender(token_digest=hash_token(authorization.split()[-1]))


def find_signed_in(senders: Collection[Sender]) -> set[Sender]:
    """Return those of the senders that a new request would be accepted from.

    The others have signed out, or their token is revoked or expired, their password changed, or
    their user deactivated or deleted. It takes a query for each AT_ONCE senders of a kind.
    """
    digests = {sender.token_digest for sender in senders if sender.token_digest}
    session_keys = {sender.session_key for sender in senders if sender.session_key}
    tokens = {Sender(token_digest=digest) for digest in _find_valid_digests(digests)}
    sessions = {Sender(session_key=key) for key in _find_valid_sessions(session_keys)}
    return tokens | sessions


def _find_valid_digests(digests: Collection[str]) -> Iterator[str]:
    for batch in _split(digests):
        tokens = AuthToken.objects.filter(is_valid_token(), pk__in=batch, user__is_active=True)
        yield from tokens.values_list("pk", flat=True)


def _find_valid_sessions(session_keys: Collection[str]) -> Iterator[str]:
    store = import_module(settings.SESSION_ENGINE).SessionStore
    rows = store.get_model_class().objects.filter(expire_date__gt=timezone.now())
    for batch in _split(session_keys):
        sessions = {
            key: _decode_session(data)
            for key, data in rows.filter(pk__in=batch).values_list("pk", "session_data")
        }
        user_ids = {user_id for user_id, _ in sessions.values()}
        users = {
            str(user.pk): user
            for user in get_user_model()._default_manager.filter(pk__in=user_ids, is_active=True)
        }
        for key, (user_id, password_hash) in sessions.items():
            user = users.get(user_id)
            if user is not None and _has_password_hash(user, password_hash):
                yield key


@lru_cache(maxsize=10_000)
def _decode_session(data: str) -> tuple[str, str]:
    """Return the id of the user who is signed in, and the hash of the password of that time."""
    session: dict[str, Any] = import_module(settings.SESSION_ENGINE).SessionStore().decode(data)
    if session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return "0", ""
    return str(session.get(SESSION_KEY, "0")), session.get(HASH_SESSION_KEY, "")


def _has_password_hash(user: User, password_hash: str) -> bool:
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(password_hash, known_hash) for known_hash in hashes)


def _split(values: Collection[T]) -> Iterator[list[T]]:
    iterator = iter(values)
    while batch := list(islice(iterator, AT_ONCE)):
        yield batch
