"""Give each request an id, which its response carries and its log lines name."""

import re
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest
from django.http.response import HttpResponseBase

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
        with structlog.contextvars.bound_contextvars(request=request_id):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        response.headers[ANTHROPIC_HEADER] = request_id
        return response
