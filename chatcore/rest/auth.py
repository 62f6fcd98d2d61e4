"""Sign in to the API with a bearer token."""

from typing import Any

from knox.auth import TokenAuthentication
from rest_framework import exceptions


class BearerTokenAuthentication(TokenAuthentication):
    """Authentication by the header `Authorization: Bearer TOKEN` (RFC 6750)."""

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        """Return the user and the token's row. Raises AuthenticationFailed, which becomes 401."""
        # knox decodes the token as ASCII and would raise an error that becomes 500.
        if not token.isascii():
            raise exceptions.AuthenticationFailed("Invalid token.")
        user, auth_token = super().authenticate_credentials(token)
        return user, auth_token
