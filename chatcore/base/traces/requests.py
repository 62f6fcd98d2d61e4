"""Spans of requests: one for each that Django answers, in the trace that its client names."""

from collections.abc import Callable

from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chatcore.base.traces import spans


class RequestTraces:
    """Middleware: opens a span for each request. Without traces it takes itself out.

    A span ends when the answer begins; a stream is a turn's, which has a span of its own.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if not spans.are_on():
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request. Its span is named by the route, which has no ids and no search."""
        attributes = {"http.request.method": request.method, "url.scheme": request.scheme}
        with spans.open_span(
            str(request.method), attributes, kind="server", headers=request.headers
        ) as span:
            response = self.get_response(request)
            if span is not None:
                match = request.resolver_match
                route = f"/{match.route}" if match else None
                if route:
                    span.update_name(f"{request.method} {route}")
                    span.set_attribute("http.route", route)
                span.set_attribute("http.response.status_code", response.status_code)
                if response.status_code >= 500:
                    spans.note_error(span, str(response.status_code))
        return response
