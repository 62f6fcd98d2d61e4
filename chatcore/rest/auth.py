"""Sign in to the API with a bearer token, and ask who sends a request before it is read."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest, parse_cookie
from knox.auth import TokenAuthentication
from rest_framework import exceptions
from rest_framework.authentication import SessionAuthentication
from structlog.contextvars import bind_contextvars

from chatcore.rest.origins import describe_origin, is_about_origin
from chatcore.rest.problems import Problem
from chatcore.rest.scopes import check_scope

API_KEY_NAME = "HTTP_X_API_KEY"


class BearerTokenAuthentication(TokenAuthentication):
    """Authentication by the header `Authorization: Bearer TOKEN` (RFC 6750)."""

    def authenticate(self, request: Any) -> tuple[Any, Any] | None:
        """Return the user and the token's row; None without the header."""
        result: tuple[Any, Any] | None = super().authenticate(request)
        if result is not None:
            check_scope(request, result[1])
        return result

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        """Return the user and the token's row. Raises AuthenticationFailed, which becomes 401."""
        # knox decodes the token as ASCII and would raise an error that becomes 500.
        if not token.isascii():
            raise exceptions.AuthenticationFailed("Invalid token.")
        user, auth_token = super().authenticate_credentials(token)
        bind_contextvars(user=str(user.pk))  # for log lines
        return user, auth_token


class CookieAuthentication(SessionAuthentication):
    """Authentication by a browser's session; a refusal names the address that is not known."""

    def enforce_csrf(self, request: Any) -> None:
        """Check the token and where the request comes from. Raises PermissionDenied."""
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as refusal:
            if not is_about_origin(str(refusal.detail).removeprefix("CSRF Failed: ")):
                raise
            raise exceptions.PermissionDenied(describe_origin(request)) from refusal


class ApiKeyAuthentication(BearerTokenAuthentication):
    """Authentication by a bearer token, or by the header `x-api-key` of Anthropic's clients."""

    def authenticate(self, request: Any) -> tuple[Any, Any] | None:
        """Return the user and the token's row; None without either header."""
        api_key = request.META.get(API_KEY_NAME, "")
        if api_key and not request.META.get("HTTP_AUTHORIZATION"):
            # A header is text in Latin-1, so every one of its characters is a byte.
            result = self.authenticate_credentials(api_key.encode("latin-1", errors="replace"))
            check_scope(request, result[1])
            return result
        return super().authenticate(request)


def find_sender(headers: Mapping[bytes, bytes]) -> Any:
    """Return the user who sends a request with these headers, by a token or a session; or None."""
    request = HttpRequest()
    authorization = headers.get(b"authorization", b"").decode("latin-1")
    api_key = headers.get(b"x-api-key", b"").decode("latin-1")
    if authorization or api_key:
        request.META["HTTP_AUTHORIZATION"] = authorization
        request.META[API_KEY_NAME] = api_key
        try:
            result = ApiKeyAuthentication().authenticate(request)
        except (exceptions.AuthenticationFailed, exceptions.PermissionDenied):
            return None
        return result[0] if result else None
    session_key = parse_cookie(headers.get(b"cookie", b"").decode("latin-1")).get(
        settings.SESSION_COOKIE_NAME
    )
    if not session_key:
        return None
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
