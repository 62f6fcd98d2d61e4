"""Check an id token: signature, issuer, audience, time and nonce."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import jwt
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings

# No symmetric ones: the provider's published keys are to verify what it says.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
REQUIRED_CLAIMS = ["iss", "sub", "aud", "exp", "iat"]
LEEWAY_SECONDS = 60

TEXTS = ("sub", "email", "preferred_username", "name", "given_name", "family_name")
MAX_SUBJECT_LENGTH = 191  # of the column


def build_nonce(code_verifier: str) -> str:
    """Return the nonce of a sign-on; only this browser's session has what it is made of."""
    return hashlib.sha256(f"nonce {code_verifier}".encode()).hexdigest()


def verify_id_token(
    id_token: str, *, key_set: Any, issuer: str, client_id: str, nonce: str
) -> dict[str, object]:
    """Return the claims of a token that one of the provider's keys has signed for this sign-on.

    Raises OAuth2Error.
    """
    try:
        keys = jwt.PyJWKSet.from_dict(key_set).keys
        key_id = jwt.get_unverified_header(id_token).get("kid")
        claims = _verify_with_any(
            id_token,
            [key for key in keys if key_id is None or key.key_id == key_id],
            issuer=issuer,
            client_id=client_id,
        )
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise OAuth2Error("Invalid id_token") from error
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise OAuth2Error("The id_token is of another sign-on")
    return claims


def _verify_with_any(
    id_token: str, keys: list[jwt.PyJWK], *, issuer: str, client_id: str
) -> dict[str, object]:
    """Return the claims by the first key that has signed them; a token may not say which it is."""
    for key in keys:
        try:
            return dict(
                jwt.decode(
                    id_token,
                    key,
                    algorithms=ALGORITHMS,
                    issuer=issuer,
                    audience=client_id,
                    leeway=LEEWAY_SECONDS,
                    options={"require": REQUIRED_CLAIMS},
                )
            )
        except jwt.InvalidSignatureError:
            continue
    raise jwt.InvalidSignatureError


def check_claims(data: Mapping[str, object]) -> None:
    """Check id token and userinfo. What is missing is no fault. Raises OAuth2Error."""
    for source, claims in data.items():
        if not isinstance(claims, dict):
            raise OAuth2Error(f"The {source} is no object")
        for name in TEXTS:
            if not isinstance(claims.get(name, ""), str | None):
                raise OAuth2Error(f"The claim {name} of the {source} is no text")
        groups = claims.get(settings.OIDC_GROUPS_CLAIM)
        if not isinstance(groups, str | list | None):
            raise OAuth2Error(f"The claim of groups of the {source} is no list")
        if len(claims.get("sub") or "") > MAX_SUBJECT_LENGTH:
            raise OAuth2Error(f"The claim sub of the {source} is too long")
        if not _is_storable(claims):
            raise OAuth2Error(f"The {source} has characters that are none")


def _is_storable(claims: Mapping[str, object]) -> bool:
    """Return whether a database takes all texts: no half of a character, and no NUL."""
    text = json.dumps(claims, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\\u0000" not in text
