"""Sign-on by an identity provider: begun on the pages of this server, and told if it is away."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

OWN_SITES = ("same-origin", "none")  # a page of this server, or an address that a person typed


class SignOn:
    """Middleware around the views of identity providers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponse | None:
        """Refuse a sign-on that a page of another site begins: it could bind a foreign account."""
        if not _get_provider_view(request).endswith("_login"):
            return None
        site = request.headers.get("Sec-Fetch-Site", "none")
        return None if site in OWN_SITES else redirect("login")

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Say that the identity provider does not answer."""
        if not _get_provider_view(request).endswith(("_login", "_callback")):
            return None
        # Only a server with the extra sign-on has such a view, and these packages.
        from allauth.socialaccount.providers.oauth2.client import OAuth2Error
        from requests import RequestException

        if not isinstance(exception, RequestException | OAuth2Error):
            return None
        return render(request, "socialaccount/authentication_error.html", status=503)


def _get_provider_view(request: HttpRequest) -> str:
    """Return the name of a view of an identity provider; empty for another view."""
    match = request.resolver_match
    module = getattr(match.func, "__module__", "") if match else ""
    if match is None or not module.startswith(("allauth.", "chatcore.accounts.openid.")):
        return ""
    return match.url_name or ""
