"""Name the person whose request is being answered in this thread."""

from allauth.core import context
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser

# Whoever sends a request; where one must be signed in, never the anonymous one.
Person = AbstractBaseUser | AnonymousUser


def get_actor_id() -> int | None:
    """Return the number of the person; None where no request is answered, or nobody's."""
    user = getattr(context.request, "user", None)
    return user.pk if user is not None and user.is_authenticated else None
