"""What django-allauth asks this project: who may make an account, and what belongs to one."""

import logging
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context as allauth_context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base import Provider
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import DisallowedHost
from django.db import transaction
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from django.urls import reverse

from chatcore.accounts.sign_up import get_sign_up_mode
from chatcore.base.threads import give_back_connection
from models_registry import keys

ANY_HOST = "*"

logger = logging.getLogger(__name__)


def find_origin(request: HttpRequest) -> str:
    """Return scheme and host for links to this server in a mail that a request sends.

    That is CHATCORE_PUBLIC_URL. Without it, the request's host counts if CHATCORE_ALLOWED_HOSTS
    names it; where that names none, people reach this server on its own machine only. Whoever asks
    for somebody else's link chooses the host of the request. Raises DisallowedHost.
    """
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL)
    name, port = split_domain_port(request.get_host())
    own_port = str(request.META.get("SERVER_PORT", ""))
    named_hosts = [host for host in settings.NAMED_HOSTS if host != ANY_HOST]
    if validate_host(name, named_hosts):
        return f"{request.scheme}://{name}{f':{port}' if port and port == own_port else ''}"
    if not settings.NAMED_HOSTS and validate_host(name, settings.LOOPBACK_HOSTS):
        return f"{request.scheme}://{name}:{own_port}"
    raise DisallowedHost("Links in e-mail need CHATCORE_PUBLIC_URL, or this host's name.")


def move_link(link: str, origin: str) -> str:
    """Return a link of this server with another beginning."""
    parts = urlsplit(link)
    return f"{origin}{parts._replace(scheme='', netloc='').geturl()}"


class AccountAdapter(DefaultAccountAdapter):
    """Sign-up by the installation's setting, and addresses as uvicorn reports them."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether this browser may make an account now."""
        return get_sign_up_mode() == "open"

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail, whose links do not follow the request's host; its server may be slow."""
        origin = find_origin(allauth_context.request)
        links = {
            name: move_link(value, origin)
            for name, value in context.items()
            if isinstance(value, str) and value.startswith(("http://", "https://"))
        }
        host = urlsplit(origin).netloc
        site = SimpleNamespace(name=host, domain=host)
        give_back_connection()
        super().send_mail(template_prefix, email, context | links | {"current_site": site})

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the client's address. Behind a proxy that is trusted, uvicorn has put it here."""
        return request.META.get("REMOTE_ADDR") or "127.0.0.1"

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """Lead back to the settings."""
        return reverse("settings")


class SecondFactorAdapter(DefaultMFAAdapter):
    """Encrypts the secrets of second factors as the keys of providers are."""

    def encrypt(self, text: str) -> str:
        """Return the text encrypted."""
        return keys.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Return the text of what `encrypt` returned."""
        return keys.decrypt(encrypted_text)


class SignOnAdapter(DefaultSocialAccountAdapter):
    """Accounts of an identity provider: made at the first sign-on, groups kept as it names them."""

    def list_apps(
        self, request: HttpRequest, provider: object = None, client_id: object = None
    ) -> list[SocialApp]:
        """Return the identity providers of the settings.

        Rows of SocialApp are not asked: no page makes one, and each view of the sign-in page would
        wait for the database.
        """
        apps = []
        for name, options in settings.SOCIALACCOUNT_PROVIDERS.items():
            for values in options.get("APPS") or filter(None, [options.get("APP")]):
                app = SocialApp(provider=name, **values)
                is_asked_for = provider in (None, app.provider, app.provider_id)
                if is_asked_for and client_id in (None, app.client_id):
                    apps.append(app)
        return apps

    def get_requests_session(self) -> Any:
        """Return the session in which the identity provider is asked, which may be slow."""
        give_back_connection()
        return super().get_requests_session()

    def on_authentication_error(
        self, request: HttpRequest, provider: Provider, **facts: object
    ) -> None:
        """Log why a sign-on was refused, which the page tells nobody."""
        why = facts.get("exception") or facts.get("error")
        logger.warning("A sign-on by %s was refused: %s", provider.id, why)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Return whether somebody without an account gets one.

        The identity provider that the operator has set decides itself who may use this server.
        """
        if sociallogin.account.provider == "oidc":
            return True
        return super().is_open_for_signup(request, sociallogin)

    def save_user(self, request: HttpRequest, sociallogin: object, form: object = None) -> object:
        """Store a new user with the groups of the claim."""
        with transaction.atomic():
            user = super().save_user(request, sociallogin, form)
            _follow_groups(user, sociallogin)
        return user

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Bring the groups of a known user up to the claim."""
        if sociallogin.is_existing:
            _follow_groups(sociallogin.user, sociallogin)


def _follow_groups(user: User, sociallogin: SocialLogin) -> None:
    """Give a user those of the existing groups that the claim names, and no others.

    A provider that sends no such claim changes nothing.
    """
    if sociallogin.account.provider != "oidc" or not settings.OIDC_GROUPS_CLAIM:
        return
    data = sociallogin.account.extra_data
    for part in (data, data.get("id_token"), data.get("userinfo")):
        names = part.get(settings.OIDC_GROUPS_CLAIM) if isinstance(part, dict) else None
        if names is not None:
            names = [names] if isinstance(names, str) else names
            user.groups.set(Group.objects.filter(name__in=[str(name) for name in names]))
            return
