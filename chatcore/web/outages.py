"""Answer 503 or 507 where the database is away, locked or full, instead of 500."""

import sys
from collections.abc import Callable
from typing import Any

from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext

from chatcore.base.rest.commits import watch_commits
from chatcore.base.rest.problems import Problem, build_headers, build_outage_problem
from chatcore.base.rest.refusals import build_refusal, is_api_path


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


def _note_outage(*, request: HttpRequest | None = None, **_: Any) -> None:
    error = sys.exc_info()[1]
    if request is None or error is None:
        return
    problem = build_outage_problem(error, request)
    if problem:
        request.outage_problem = problem  # type: ignore[attr-defined]
