"""What django-allauth asks this project, where a browser may come with an invitation."""

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest

from chatcore.accounts import adapters
from chatcore.accounts.sign_up import get_sign_up_mode
from chatcore.contrib.invitations import links


class AccountAdapter(adapters.AccountAdapter):
    """Uses an invitation up in the transaction that stores the new user."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        if get_sign_up_mode() == "invitation":
            return links.find_in(request) is not None
        return super().is_open_for_signup(request)

    def save_user(
        self, request: HttpRequest, user: User, form: object, commit: bool = True
    ) -> object:
        with transaction.atomic():
            user = super().save_user(request, user, form, commit)
            if commit:
                links.redeem(request, user)
        return user


class SignOnAdapter(adapters.SignOnAdapter):
    """Uses an invitation up too; a form is stored by the adapter of accounts."""

    def save_user(self, request: HttpRequest, sociallogin: object, form: object = None) -> object:
        with transaction.atomic():
            user = super().save_user(request, sociallogin, form)
            if form is None:
                links.redeem(request, user)
        return user
