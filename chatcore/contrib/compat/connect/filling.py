"""Fill a block with a user's models, an address and a token."""

from django.contrib.auth.models import User

from chatcore.accounts import tokens
from chatcore.accounts.rights import select_models
from chatcore.base.rest.auth import CHAT
from chatcore.contrib.compat.connect.programs import Connection, Program, name_models
from chatcore.contrib.compat.model_aliases import choose_small_model
from models_registry.models import AiModel


def build_connection(
    user: User, *, address: str, token: str, model: AiModel | None
) -> Connection | None:
    """Return what blocks are filled with; None for a user without a model."""
    usable = select_models(user.pk)
    main = model or usable.find_default()
    if main is None:
        return None
    models = list(usable.list_usable())
    return Connection(
        address=address.rstrip("/"),
        token=token,
        model=main,
        small_model=choose_small_model(models, main),
        names=name_models(models),
    )


def make_token(user: User, program: Program) -> str:
    """Make the token of a program and return its text. Raises TooManyTokens.

    It makes nothing that would outlive it: a program reads and writes conversations.
    """
    expiry = tokens.get_default_expiry()
    return tokens.create_token(user, name=program.title, expiry=expiry, scope=CHAT)[1]
