"""Name the person whose request is being answered in this thread."""

from allauth.core import context


def get_actor_id() -> int | None:
    """Return the number of the person; None where no request is answered, or nobody's."""
    user = getattr(context.request, "user", None)
    return user.pk if user is not None and user.is_authenticated else None
