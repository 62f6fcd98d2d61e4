"""Sign in by a verified e-mail address in the place of a name."""

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.http import HttpRequest


class EmailBackend(AuthenticationBackend):
    """Takes what has an @ in it for an address. Names are Django's own backend's business."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> User | None:
        """Return the user whose address and password these are."""
        address = credentials.get("username") or ""
        password = credentials.get("password") or ""
        if "@" not in address or not password:
            return None
        row = EmailAddress.objects.filter(email__iexact=address, verified=True).first()
        if row is None:
            # As much work as for an address that exists, so that time does not tell.
            User().set_password(password)
            return None
        user: User = row.user
        if user.check_password(password) and self.user_can_authenticate(user):
            return user
        return None
