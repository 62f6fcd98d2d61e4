"""The address with which links in e-mail begin: never one that the request made up."""

from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

ANY_HOST = "*"


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
