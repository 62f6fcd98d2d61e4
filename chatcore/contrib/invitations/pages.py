"""Accept an invitation, the step before the form of a new account."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chatcore.accounts.sign_up import get_sign_up_mode
from chatcore.contrib.invitations import links


@never_cache
@require_safe
def accept_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Remember the invitation in this browser and lead to the form. Looking uses nothing up."""
    if request.user.is_authenticated:
        return redirect("home")
    if get_sign_up_mode() == "closed":
        return render(request, "invitations/closed.html", status=403)
    if not links.accept(request, token):
        return render(request, "invitations/used.html", status=410)
    return redirect("account_signup")
