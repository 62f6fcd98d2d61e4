"""API tokens: made with a name and an end, and listed with both."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce
from knox.models import AuthToken

from chatcore.accounts import audit
from chatcore.base.databases.person_lock import lock_person
from chatcore.base.rest import auth
from chatcore.base.rest.auth import is_valid_token
from chatcore.extension import Refusal
from chatcore.models import TokenName

MAX_TOKENS = 100  # valid ones of a user
MAX_NAME_CHARS = TokenName._meta.get_field("name").max_length or 0


class TooManyTokens(Refusal):
    """The user has as many valid tokens as anyone may have."""

    status = 409
    type = "too_many_tokens"

    def __init__(self) -> None:
        super().__init__(f"There are already {MAX_TOKENS} valid tokens, the most. Revoke some.")


def get_default_expiry() -> timedelta | None:
    """Return how long a token is valid if nobody says otherwise; None: until it is revoked."""
    return timedelta(days=settings.TOKEN_DAYS) if settings.TOKEN_DAYS else None


def create_token(
    user: Any,
    *,
    name: str,
    expiry: timedelta | None,
    scope: str = auth.ALL,
    keeps_conversations: bool = True,
) -> tuple[AuthToken, str]:
    """Make a token of a user; return its row and its text, which is not stored.

    `keeps_conversations` says whether the conversations of programs that use it are stored.

    Raises TooManyTokens.
    """
    with transaction.atomic():
        lock_person(user.pk)
        if AuthToken.objects.filter(is_valid_token(), user=user).count() >= MAX_TOKENS:
            raise TooManyTokens
        prefix = auth.PREFIXES[scope]
        token, text = AuthToken.objects.create(user, expiry=expiry, prefix=prefix)
        if name or not keeps_conversations:
            TokenName.objects.create(
                token=token, name=name, keeps_conversations=keeps_conversations
            )
        audit.record("token.made", target=user, detail=token.token_key)
    token.name, token.used_at = name, None
    token.keeps_conversations = keeps_conversations
    return token, text


def revoke_tokens(user: Any, **which: object) -> int:
    """Delete those of a user's tokens that the filters name; return how many."""
    with transaction.atomic():
        tokens = AuthToken.objects.filter(user=user, **which)
        for key in list(tokens.values_list("token_key", flat=True)):
            audit.record("token.revoked", target=user, detail=key)
        count: int = tokens.delete()[1].get("knox.AuthToken", 0)
    return count


def keep_conversations(user: Any, is_kept: bool, **which: object) -> AuthToken | None:
    """Say whether the conversations of programs that use a token are stored from now on.

    Returns the token of the user that the filters name, as `list_tokens` has it; None if there is
    none.
    """
    with transaction.atomic():
        token = list_tokens(user).filter(**which).first()
        if token is None or token.keeps_conversations == is_kept:
            return token
        defaults = {"keeps_conversations": is_kept}
        TokenName.objects.update_or_create(token=token, defaults=defaults)
        audit.record("token.changed", target=user, detail=token.token_key)
    token.keeps_conversations = is_kept
    return token


def list_tokens(user: object) -> QuerySet[AuthToken]:
    """Return a user's tokens, newest first, each with `name` and `used_at` (None: it has none).

    `keeps_conversations` is as `create_token` has it.
    """
    tokens: QuerySet[AuthToken] = AuthToken.objects.filter(user=user)
    tokens = tokens.annotate(
        name=F("token_name__name"),
        used_at=F("token_name__used_at"),
        keeps_conversations=Coalesce(F("token_name__keeps_conversations"), True),
    )
    return tokens.order_by("-created", "-digest")
