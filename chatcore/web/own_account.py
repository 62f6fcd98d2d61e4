"""Delete one's own account, with everything in it."""

from allauth.account.decorators import reauthentication_required
from django.contrib.auth import get_user_model, logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from chatcore.accounts.user_erasure import erase_user
from chatcore.extension import list_keepers
from chatcore.web.forms import DeleteAccountForm


@login_required
@never_cache
@reauthentication_required
@require_http_methods(["GET", "POST"])
def delete_account(request: HttpRequest) -> HttpResponse:
    """Ask for the name, then erase the account. Answer 409 if it must be kept, with the reason."""
    user = get_user_model()._default_manager.get_by_natural_key(request.user.get_username())
    if problem := _find_reason_to_stay(user):
        return render(request, "chatcore/delete_account.html", {"problem": problem}, status=409)
    form = DeleteAccountForm(user.get_username(), request.POST or None)
    if not form.is_valid():
        return render(request, "chatcore/delete_account.html", {"form": form})
    logout(request)
    erase_user(user)
    return render(request, "chatcore/account_deleted.html")


def _find_reason_to_stay(user: User) -> str:
    if list_keepers([user.pk]):
        return _("This account is kept for legal reasons and cannot be deleted now.")
    others = get_user_model()._default_manager.filter(is_superuser=True, is_active=True)
    if user.is_superuser and not others.exclude(pk=user.pk).exists():
        return _("You are the only administrator. Make somebody else one first.")
    return ""
