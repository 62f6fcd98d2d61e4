"""The views of Anthropic's API."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.context.compactor import get_compactor
from chatcore.faces import answers
from chatcore.faces.messages.face_view import MessagesFaceView
from chatcore.faces.messages.message_form import MessageForm
from chatcore.faces.messages.request import parse_count_request, parse_message_request
from chatcore.rest.problems import Problem


class MessagesView(MessagesFaceView):
    """Messages."""

    def post(self, request: Request) -> HttpResponseBase:
        """Answer the last message, with a memory if the request names a session."""
        message_request = parse_message_request(request.data, request.headers)
        return answers.answer(request, message_request, MessageForm(message_request))


class CountTokensView(MessagesFaceView):
    """Counting the tokens of a request."""

    def post(self, request: Request) -> Response:
        """Return how many tokens a request has. Nothing is stored or sent."""
        message_request = parse_count_request(request.data, request.headers)
        provider_request = MessageForm(message_request).build_provider_request()
        tokens = get_compactor().estimate_request(message_request.model, provider_request)
        return Response({"input_tokens": tokens})


class UnknownUrlView(MessagesFaceView):
    """Any other path under /v1/messages/."""

    authentication_classes = ()  # type: ignore[assignment]
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise the 404 problem for every method."""
        raise Problem(404, "unknown_url", f"Not found: {request.method} {request.path[:200]}.")
