"""Middlewares of every request: its id, the headers of its response, and outages.

Those of accounts stand in chatcore/accounts; the probes in chatcore/serving/probes.py.
"""

import re
import sys
import uuid
from collections.abc import Callable, Mapping

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.template.loader import render_to_string
from django.utils.translation import gettext
from structlog.contextvars import bind_contextvars, bound_contextvars

from chatcore.base.rest.commits import watch_commits
from chatcore.base.rest.problems import Problem, build_headers, build_outage_problem
from chatcore.base.rest.refusals import build_refusal, is_api_path

# Messages are texts of models and strangers. The page cleans them; if that ever fails, a script of
# theirs still does not run and a picture of theirs does not call home. Inline styles are allowed,
# because pages of the admin contain some (chatcore/admin/texts.py). The policy of the admin is
# in chatcore/admin/site.py.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

HEADER = "X-Request-Id"
ANTHROPIC_HEADER = "Request-Id"  # its name in Anthropic's API
CLIENT_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestIds:
    """Middleware: the client's own id if it sent a usable one, else a new one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request, and put its id in the response."""
        client_id = request.headers.get(HEADER, "")
        request_id = client_id if CLIENT_ID.fullmatch(client_id) else uuid.uuid4().hex
        # Those of the user and of the session are bound when they are known.
        with bound_contextvars(request=request_id, user=None, session=None):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        response.headers[ANTHROPIC_HEADER] = request_id
        return response

    def process_view(
        self, request: HttpRequest, view: object, args: object, view_kwargs: Mapping[str, object]
    ) -> None:
        """Bind the ids of the conversation, and of the user of a browser's session."""
        session_id = view_kwargs.get("session_id")
        bind_contextvars(session=str(session_id) if session_id else None)
        # Without its cookie, nobody has to look for a browser's session.
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            bind_contextvars(user=request.session.get(SESSION_KEY))


class SecurityHeaders:
    """Middleware that adds the headers to every response without such headers of its own.

    Pages and the API are not stored: they are words of people, and a browser's cache outlives their
    signing out. Static files say themselves how long they may be kept.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class CompressedPages(GZipMiddleware):
    """Django's middleware, which hides how well a secret compresses, for whole pages alone.

    A page is mostly markup, a seventh of which goes over the wire. Streams go out word by word, and
    other answers are for programs, which have a proxy for that.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Compress a page if the browser allows it."""
        is_page = response.get("Content-Type", "").startswith("text/html")
        if not isinstance(response, HttpResponse) or not is_page:
            return response
        return super().process_response(request, response)


class OutageResponses:
    """Middleware around all others, because they use the database too: sessions, signing in.

    The views of the APIs answer for themselves; this is for the pages and the other middleware.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        # Django turns an exception into a response at each middleware, so that the next one sees a
        # response only. This signal is sent before that, with the exception at hand.
        got_request_exception.connect(_note_outage, dispatch_uid="chatcore.web.outages")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with watch_commits(request):
            response = self.get_response(request)
        problem = getattr(request, "outage_problem", None)
        return build_response(request, problem) if problem else response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer for a view that has raised; return None for other errors than an outage."""
        problem = build_outage_problem(exception, request)
        return build_response(request, problem) if problem else None


def build_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Build the response in the form of the request: for an API, for htmx, or a page."""
    if is_api_path(request.path_info):
        refusal = build_refusal(request.path_info, problem)
        return HttpResponse(refusal.body, status=refusal.status, headers=refusal.headers)
    headers = build_headers(problem) | {"Cache-Control": "no-store"}
    text = describe_outage(problem.status_code)
    if request.headers.get("HX-Request"):
        content = text
        headers["Content-Type"] = "text/plain; charset=utf-8"
    else:
        # Without the request, so that nothing asks the database who is signed in.
        content = render_to_string("chatcore/outage.html", {"text": text, "path": request.path})
    return HttpResponse(content, status=problem.status_code, headers=headers)


def describe_outage(status: int) -> str:
    """Return what the page says, in the user's language."""
    if status == 507:
        return gettext("The server has no room left to store anything. What is stored is safe.")
    return gettext("The server cannot use its database at the moment. What is stored is safe.")


def _note_outage(*, request: HttpRequest | None = None, **_: object) -> None:
    error = sys.exc_info()[1]
    if request is None or error is None:
        return
    problem = build_outage_problem(error, request)
    if problem:
        request.outage_problem = problem  # type: ignore[attr-defined]
