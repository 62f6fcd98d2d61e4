"""Sign in to the API with a bearer token, and ask who sends a request before it is read.

What a token may do, its scope, is the beginning of its text, so no query is needed for it. Only its
digest is stored, so nobody can give a token another beginning. A token without one may do all that
its user may.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, parse_cookie
from django.utils import timezone
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from knox.models import AuthToken
from rest_framework import exceptions
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from structlog.contextvars import bind_contextvars

from chatcore.base.databases.compiled_queries import CompiledQuery
from chatcore.base.rest.origins import describe_origin, is_about_origin
from chatcore.base.rest.problems import Problem
from chatcore.base.rest.token_uses import note_use
from chatcore.extension import get_extensions

API_KEY_NAME = "HTTP_X_API_KEY"
_TOKENS = CompiledQuery(
    lambda digest: AuthToken.objects.select_related("user", "token_name").filter(digest=digest)
)


class BearerTokenAuthentication(TokenAuthentication):
    """Authentication by the header `Authorization: Bearer TOKEN` (RFC 6750)."""

    def authenticate(self, request: Request | HttpRequest) -> tuple[User, AuthToken] | None:
        """Return the user and the token's row; None without the header."""
        result: tuple[User, AuthToken] | None = super().authenticate(request)
        if result is not None:
            check_scope(request, result[1])
        return result

    def authenticate_credentials(self, token: bytes) -> tuple[User, AuthToken]:
        """Return the user and the token's row. Raises AuthenticationFailed, which becomes 401.

        One look for the digest, which is the key of the table. knox's own method reads all tokens
        of the user besides, to delete expired ones; here a chore does
        (chatcore/accounts/expiry.py), and this deletes the one that was sent.
        """
        try:
            # No token has other characters, and knox hashes no others.
            digest = hash_token(token.decode("ascii"))
            (auth_token,) = _TOKENS.fetch(digest)
        except ValueError:  # no such token, or none at all
            raise exceptions.AuthenticationFailed("Invalid token.") from None
        if auth_token.expiry and auth_token.expiry <= timezone.now():
            auth_token.delete()
            raise exceptions.AuthenticationFailed("Invalid token.")
        user, _ = self.validate_user(auth_token)
        note_use(digest)
        bind_contextvars(user=str(user.pk))  # for log lines
        return user, auth_token


class CookieAuthentication(SessionAuthentication):
    """Authentication by a browser's session; a refusal names the address that is not known."""

    def enforce_csrf(self, request: Request) -> None:
        """Check the token and where the request comes from. Raises PermissionDenied."""
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as refusal:
            if not is_about_origin(str(refusal.detail).removeprefix("CSRF Failed: ")):
                raise
            raise exceptions.PermissionDenied(describe_origin(request)) from refusal


class ApiKeyAuthentication(BearerTokenAuthentication):
    """Authentication by a bearer token, or by the header `x-api-key` of Anthropic's clients."""

    def authenticate(self, request: Request | HttpRequest) -> tuple[User, AuthToken] | None:
        """Return the user and the token's row; None without either header."""
        api_key = request.META.get(API_KEY_NAME, "")
        if api_key and not request.META.get("HTTP_AUTHORIZATION"):
            # A header is text in Latin-1, so every one of its characters is a byte.
            result = self.authenticate_credentials(api_key.encode("latin-1", errors="replace"))
            check_scope(request, result[1])
            return result
        return super().authenticate(request)


def is_valid_token() -> Q:
    """Return the condition of a token that has not expired."""
    return Q(expiry=None) | Q(expiry__gt=timezone.now())


def find_token(headers: Mapping[bytes, bytes]) -> AuthToken | None:
    """Return the valid token of a request with these headers, with its user; or None."""
    request = HttpRequest()
    request.META["HTTP_AUTHORIZATION"] = headers.get(b"authorization", b"").decode("latin-1")
    request.META[API_KEY_NAME] = headers.get(b"x-api-key", b"").decode("latin-1")
    try:
        result = ApiKeyAuthentication().authenticate(request)
    except (exceptions.AuthenticationFailed, exceptions.PermissionDenied):
        return None
    return result[1] if result else None


def find_sender(headers: Mapping[bytes, bytes]) -> User | None:
    """Return the user who sends a request with these headers, by a token or a session; or None."""
    if headers.get(b"authorization") or headers.get(b"x-api-key"):
        token = find_token(headers)
        return token.user if token else None
    session_key = parse_cookie(headers.get(b"cookie", b"").decode("latin-1")).get(
        settings.SESSION_COOKIE_NAME
    )
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if user.is_authenticated else None


def build_sender_problem() -> Problem:
    """Build the 401 problem of a request whose sender is not known."""
    error = exceptions.NotAuthenticated
    problem = Problem(error.status_code, error.default_code, str(error.default_detail))
    header = BearerTokenAuthentication().authenticate_header(None)
    problem.auth_header = header  # type: ignore[attr-defined]  # as REST framework does
    return problem


ALL, CHAT, READ_ONLY = "all", "chat", "read"
PREFIXES = {ALL: "", CHAT: "chat_", READ_ONLY: "read_"}
# What outlives a token, or reaches other servers with what is in the account.
ACCOUNT_PATHS = ("/api/v1/tokens", "/api/v1/mcp_servers", "/api/v1/setup")


def find_scope(token_key: str) -> str:
    """Return the scope of the token that begins with these characters."""
    return next(
        (scope for scope in (CHAT, READ_ONLY) if token_key.startswith(PREFIXES[scope])), ALL
    )


def get_scope(request: object) -> str:
    """Return the scope of a request's token; a browser may do everything."""
    token = getattr(request, "auth", None)
    return find_scope(token.token_key) if token is not None else ALL


class SignedInRequest(Request):
    """The type of a request of a view that lets only people in who are signed in."""

    user: User


def check_scope(request: Request | HttpRequest, token: AuthToken) -> None:
    """Raise PermissionDenied, which becomes 403, for what the token's scope leaves out.

    A request without a method, as that of a WebSocket, counts as one that writes.
    """
    scope = find_scope(token.token_key)
    if scope == READ_ONLY and request.method not in SAFE_METHODS:
        raise exceptions.PermissionDenied("The token's scope is read: it may only read.")
    if scope == CHAT and request.path_info.startswith(_list_account_paths()):
        raise exceptions.PermissionDenied(
            "The token's scope is chat: it changes nothing that would outlive it."
        )


@cache
def _list_account_paths() -> tuple[str, ...]:
    return sum((extension.account_paths for extension in get_extensions()), ACCOUNT_PATHS)


def refuse_servers(scope: str) -> None:
    """Raise PermissionDenied where a request with a token of this scope brings MCP servers."""
    if scope == CHAT:
        raise exceptions.PermissionDenied(
            "The token's scope is chat: its requests bring no MCP servers along."
        )
