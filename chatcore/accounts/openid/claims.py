"""Refuse what an identity provider says about a person where it cannot be read or stored."""

import json
from collections.abc import Mapping

from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings

TEXTS = ("sub", "email", "preferred_username", "name", "given_name", "family_name")
MAX_SUBJECT_LENGTH = 191  # of the column


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
