"""What every page may ask about signing in: the ways that this server offers, and its cookie."""

from allauth.socialaccount.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject


def describe_sign_in(request: HttpRequest) -> dict[str, object]:
    """Return the variables for templates; nothing is looked up before a template asks."""
    return {
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
        "sends_email": settings.SENDS_EMAIL,
        "is_open_to_all": settings.SIGN_UP == "open",  # which only the variable says
        "sign_on_providers": SimpleLazyObject(lambda: list_providers(request)),
    }


def list_providers(request: HttpRequest) -> list[dict[str, str]]:
    """Return the names and addresses of the identity providers that people may sign on with."""
    return [
        {"name": provider.name, "url": provider.get_login_url(request)}
        for provider in get_adapter().list_providers(request)
    ]
