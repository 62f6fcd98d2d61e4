"""A span for each request."""

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chatcore.base.tracing import get_traces


class RequestTraces:
    """Middleware: opens a span for each request. Without traces it takes itself out.

    A span ends when the answer begins; a stream is a turn's, which has a span of its own.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if settings.TRACES == "off":
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request. Its span is named by the route, which has no ids and no search."""
        traces, method = get_traces(), str(request.method)
        attributes = {"http.request.method": method, "url.scheme": request.scheme}
        with traces.open_span(method, attributes, kind="server", headers=request.headers):
            response = self.get_response(request)
            status = response.status_code
            route = f"/{request.resolver_match.route}" if request.resolver_match else None
            traces.note(
                {"http.route": route, "http.response.status_code": status},
                name=f"{method} {route}" if route else "",
                error_type=str(status) if status >= 500 else "",
            )
        return response
