"""What goes with a password when it changes."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from knox.models import AuthToken

from chatcore.accounts import audit


class TokenRevoker:
    """Deletes a user's API tokens when the password changes, however it is changed.

    Django tells its password validators of every change, and not when it only hashes the same
    password anew. The sessions of browsers end by themselves, because they carry a hash of it.
    """

    def validate(self, password: str, user: object = None) -> None:
        """Accept any password."""

    def password_changed(self, password: str, user: User | None = None) -> None:
        """Revoke the tokens: whoever knew the old password may have made some."""
        if user is not None and user.pk is not None:
            with transaction.atomic():
                AuthToken.objects.filter(user=user).delete()
                audit.record("password.changed", target=user)

    def get_help_text(self) -> str:
        """Return what the forms say beside a new password."""
        return _("A new password revokes the API tokens and signs other browsers out.")
