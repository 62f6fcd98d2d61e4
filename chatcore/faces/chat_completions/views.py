"""The routes of the OpenAI face."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync
from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api import event_streams
from chatcore.events.log import HEARTBEAT_SECONDS
from chatcore.events.sse import hand_over
from chatcore.faces.chat_completions import errors, memory, responses
from chatcore.faces.chat_completions.request import Asked, model_named, understood
from chatcore.faces.chat_completions.responses import Frame, chunks, gathered, with_heartbeats
from chatcore.faces.chat_completions.stateless import Exchange
from chatcore.providers.errors import ProviderError
from chatcore.rest import limits
from chatcore.rest.auth import BearerToken, ImportBody
from chatcore.turns import service
from models_registry.models import AiModel

Parts = Any  # an asynchronous generator of parts


class Face(APIView):
    """What the routes have in common: tokens alone, and refusals in OpenAI's words."""

    authentication_classes = (BearerToken,)
    parser_classes = (ImportBody,)
    schema = None  # the document of this face is OpenAI's own

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        """Not the REST face's."""
        return errors.handle


class ChatCompletions(Face):
    """Chat completions."""

    def post(self, request: Request) -> HttpResponseBase:
        """Answer the last message: with a memory where the request names a session, else by what the request holds alone."""
        asked = understood(request.data, request.headers)
        limits.count_turn(request)
        try:
            return (
                self._remembered(request, asked) if asked.session else self._alone(request, asked)
            )
        except ProviderError as error:
            raise errors.of_provider(error) from None

    def _remembered(self, request: Request, asked: Asked) -> HttpResponseBase:
        turn, after = memory.begin(memory.session_of(request.user, asked), asked)
        if asked.stream:
            return _streamed(
                request, asked, memory.parts(turn, after), lambda: memory.headers(turn)
            )
        turn = service.wait(turn.pk)
        text, reasoning, finished = memory.answer(turn)
        counted = finished.usage.input if finished.usage else None
        return Response(
            Frame(model=asked.name).whole(text, reasoning, finished),
            headers=memory.headers(turn, counted),
        )

    def _alone(self, request: Request, asked: Asked) -> HttpResponseBase:
        exchange = Exchange(asked)
        if asked.stream:
            return _streamed(
                request,
                asked,
                with_heartbeats(exchange.parts(), HEARTBEAT_SECONDS),
                lambda: exchange.headers,
            )
        close_old_connections()  # a pooled one is others' while the model answers
        text, reasoning, finished = async_to_sync(gathered)(exchange.parts())
        return Response(
            Frame(model=asked.name).whole(text, reasoning, finished), headers=exchange.headers
        )


class Models(Face):
    """The language models that can be used."""

    def get(self, request: Request) -> Response:
        """All of them, as OpenAI lists its own."""
        return Response(
            {
                "object": "list",
                "data": [_shown(model) for model in AiModel.objects.usable().order_by("id")],
            }
        )


class OneModel(Face):
    """One language model."""

    def get(self, request: Request, name: str) -> Response:
        """By its name, or `provider/name`."""
        return Response(_shown(model_named(name)))


class Nowhere(Face):
    """An address under /v1/ that is none."""

    authentication_classes = ()  # type: ignore[assignment]
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Whatever the method is."""
        raise errors.Refused(
            404, "unknown_url", f"Unknown request URL: {request.method} {request.path[:200]}."
        )


def _streamed(
    request: Request, asked: Asked, parts: Parts, headers: Callable[[], dict[str, str]]
) -> HttpResponseBase:
    """The answer as it is said. What fails before the first word is raised, and is the response's status; until then it holds a thread."""
    close_old_connections()  # its own reads bring their own connections
    stream = chunks(parts, Frame(model=asked.name), include_usage=asked.include_usage)
    body = async_to_sync(responses.begun)(stream)
    return hand_over(
        request._request,
        body,
        content_type=event_streams.MEDIA_TYPE,
        headers=event_streams.HEADERS | headers(),
    )


def _shown(model: AiModel) -> dict[str, Any]:
    """`context_window` is an extra that OpenAI's clients pass on."""
    return {
        "id": str(model),
        "object": "model",
        "created": 0,
        "owned_by": model.provider.name,
        "context_window": model.context_window_size,
    }
