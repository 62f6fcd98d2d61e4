"""Which address a refused form names: one that this server does not know."""

import re
from urllib.parse import urlsplit

from django.http import HttpRequest

# How Django's reasons begin that are about where a form comes from, and not about its token.
ORIGIN_REASONS = ("Origin checking", "Referer checking")
ORIGIN = re.compile(r"https?://[\w.:\[\]-]{1,253}", re.ASCII)
HOST = re.compile(r"[\w.:\[\]-]{1,253}", re.ASCII)
# For programs and the log; the pages say it in the reader's language.
WAY_OUT = (
    "If it is this server's address, set it as CHATCORE_PUBLIC_URL, or its name among"
    " CHATCORE_ALLOWED_HOSTS."
)


def is_about_origin(reason: str) -> bool:
    """Return whether Django has refused a form for where it comes from."""
    return reason.startswith(ORIGIN_REASONS)


def find_origin(request: HttpRequest) -> str:
    """Return the address of the page that a form comes from; empty if none that is one is named."""
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None:
        try:
            parts = urlsplit(request.META.get("HTTP_REFERER", ""))
        except ValueError:
            return ""
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return origin if ORIGIN.fullmatch(origin) else ""


def find_host(request: HttpRequest) -> str:
    """Return the name by which a request asks; empty if it is none that could be shown."""
    host = request.META.get("HTTP_HOST", "")
    return host if HOST.fullmatch(host) else ""


def describe_origin(request: HttpRequest) -> str:
    """Return in English why a form was refused for its origin, and what its operator does."""
    if origin := find_origin(request):
        return f"This server does not know the address {origin}. {WAY_OUT}"
    return "The request does not say which page it comes from: it has neither Origin nor Referer."


def describe_host(request: HttpRequest) -> str:
    """Return in English that the name is not known, and what its operator does."""
    return (
        f"This server does not know the name {find_host(request) or 'it was asked by'}. {WAY_OUT}"
    )
