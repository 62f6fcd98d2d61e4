"""What an API token may do. Its scope is the beginning of its text, so no query is needed for it.

Only its digest is stored, so nobody can give a token another beginning. A token without one may do
all that its user may.
"""

from functools import cache
from typing import Any

from rest_framework import exceptions
from rest_framework.permissions import SAFE_METHODS

from chatcore.extension import get_extensions

ALL, CHAT, READ_ONLY = "all", "chat", "read"
PREFIXES = {ALL: "", CHAT: "chat_", READ_ONLY: "read_"}
# What outlives a token, or reaches other servers with what is in the account.
ACCOUNT_PATHS = ("/api/v1/tokens", "/api/v1/mcp_servers", "/api/v1/setup")


def find_scope(token_key: str) -> str:
    """Return the scope of the token that begins with these characters."""
    return next(
        (scope for scope in (CHAT, READ_ONLY) if token_key.startswith(PREFIXES[scope])), ALL
    )


def get_scope(request: Any) -> str:
    """Return the scope of a request's token; a browser may do everything."""
    token = getattr(request, "auth", None)
    return find_scope(token.token_key) if token is not None else ALL


def check_scope(request: Any, token: Any) -> None:
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
