"""An identity provider on loopback that speaks OpenID Connect, from the package registry."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def run_identity_provider(**claims_of_users: dict[str, Any]) -> Iterator[str]:
    """Run the provider with these people; yield its address."""
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # loopback has no TLS
    from oidc_provider_mock import User, run_server_in_thread

    users = [User(sub=name, claims=claims) for name, claims in claims_of_users.items()]
    with run_server_in_thread(user_claims=users) as server:
        yield f"http://localhost:{server.server_port}"


def build_settings(issuer: str) -> dict[str, Any]:
    """Return what CHATCORE_OIDC_ISSUER and its companions make of the address."""
    app = {
        "provider_id": "oidc",
        "name": "Example SSO",
        "client_id": "chatcore",
        "secret": "a secret of tests",
        "settings": {"server_url": issuer, "oauth_pkce_enabled": True},
    }
    return {"openid_connect": {"APPS": [app], "SCOPE": ["openid", "profile", "email"]}}
