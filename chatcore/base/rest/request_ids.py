"""Give each request an id, which its response carries and its log lines name."""

import re
import uuid
from collections.abc import Callable, Mapping

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from structlog.contextvars import bind_contextvars, bound_contextvars

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
