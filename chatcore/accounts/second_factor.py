"""Second factors: required where the operator says so, and a code of an app counts once."""

from collections.abc import Callable

from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from chatcore.base.rest.problems import Problem
from chatcore.base.rest.refusals import build_refusal, is_api_path

# Whoever lacks the factor adds it on these pages, confirms the password, or leaves.
FREE_VIEWS = {
    "account_change_password",
    "account_confirm_email",
    "account_email",
    "account_logout",
    "account_reauthenticate",
    "account_set_password",
    "logout",
    "set_language",
}


class ActivateForm(ActivateTOTPForm):
    """Takes the code that switches the factor on; the same one does not sign in after that."""

    def clean_code(self) -> str:
        """Check the code, and note that it is used. A code counts for 30 seconds."""
        code: str = super().clean_code()
        data = {"secret": get_adapter().encrypt(self.secret)}
        factor = Authenticator(user=self.user, type=Authenticator.Type.TOTP, data=data)
        factor.wrap().validate_code(code)  # which counts once
        return code


class SecondFactorRequired:
    """Middleware that lets those who must have a second factor do nothing before they have it.

    API tokens have no second step; they are made on a page, where this holds.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponse | None:
        """Lead to the page that adds the factor; refuse what is no page."""
        if not _is_missing(request) or _is_free(request):
            return None
        if is_api_path(request.path_info) or request.headers.get("HX-Request"):
            detail = "Add a second factor in the settings first."
            problem = Problem(403, "second_factor_required", detail)
            refusal = build_refusal(request.path_info, problem)
            return HttpResponse(refusal.body, status=refusal.status, headers=refusal.headers)
        return redirect("mfa_index")


def _is_missing(request: HttpRequest) -> bool:
    if settings.SECOND_FACTOR == "nobody" or not request.user.is_authenticated:
        return False
    if settings.SECOND_FACTOR == "staff" and not request.user.is_staff:
        return False
    return not is_mfa_enabled(request.user)


def _is_free(request: HttpRequest) -> bool:
    match = request.resolver_match
    name = (match.url_name if match else "") or ""
    return name in FREE_VIEWS or name.startswith("mfa_")
