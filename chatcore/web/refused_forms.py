"""Say which address the server does not know, where a form or a host name is refused."""

import logging

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.views.defaults import bad_request

from chatcore.base.rest.origins import (
    describe_host,
    describe_origin,
    find_host,
    find_origin,
    is_about_origin,
)
from chatcore.base.rest.problems import TOO_LARGE_ERRORS, Problem
from chatcore.base.rest.refusals import build_refusal, is_api_path

logger = logging.getLogger(__name__)


def refuse_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that Django does not believe, for its origin or for its token."""
    if not is_about_origin(reason):
        text = gettext(
            "The page is older than your last sign-in, or your browser keeps no cookies of this"
            " server. Load the page again, and send the form once more."
        )
        return _respond(request, 403, {"text": text})
    logger.warning("A form was refused. %s", describe_origin(request))
    if origin := find_origin(request):
        text = gettext("This server does not know that it is reached at %(address)s.")
        return _respond(request, 403, {"text": text % {"address": origin}, "names_settings": True})
    text = gettext("Your browser does not tell from which page the form comes.")
    return _respond(request, 403, {"text": text})


def refuse_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that cannot be read, or that asks by a name which is not this server's."""
    if isinstance(exception, TOO_LARGE_ERRORS):
        return _respond(request, 413, {"text": gettext("The form has too many fields.")})
    if not isinstance(exception, DisallowedHost):
        return bad_request(request, exception)
    detail = describe_host(request)
    logger.warning("A request was refused. %s", detail)
    if is_api_path(request.path_info):
        refusal = build_refusal(request.path_info, Problem(400, "unknown_host", detail))
        return HttpResponse(refusal.body, status=refusal.status, headers=refusal.headers)
    text = gettext("This server does not know that it is reached at %(address)s.")
    address = find_host(request) or gettext("this address")
    return _respond(request, 400, {"text": text % {"address": address}, "names_settings": True})


def _respond(request: HttpRequest, status: int, context: dict[str, object]) -> HttpResponse:
    if request.headers.get("HX-Request"):
        content = f"{context['text']}\n"
        return HttpResponse(content, status=status, content_type="text/plain; charset=utf-8")
    # Without the request, because nothing may ask for its host.
    content = render_to_string("chatcore/refused.html", context)
    return HttpResponse(content, status=status)
