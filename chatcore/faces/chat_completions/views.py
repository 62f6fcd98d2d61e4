"""The views of OpenAI's API."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from asgiref.sync import async_to_sync
from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api import event_streams
from chatcore.events.log import HEARTBEAT_SECONDS
from chatcore.events.long_responses import hand_over_stream
from chatcore.faces.chat_completions import errors, memory, streams
from chatcore.faces.chat_completions.completion_format import CompletionEnvelope
from chatcore.faces.chat_completions.request import (
    CompletionRequest,
    get_usable_model,
    parse_completion_request,
)
from chatcore.faces.chat_completions.stateless import StatelessExchange
from chatcore.providers.base import StreamPart
from chatcore.rest import limits
from chatcore.rest.auth import BearerTokenAuthentication
from chatcore.rest.parsers import ImportBodyParser
from chatcore.turns import service
from models_registry.models import AiModel


class OpenAIFaceView(APIView):
    """A view with errors in OpenAI's form. It accepts bearer tokens only, no cookies."""

    authentication_classes = (BearerTokenAuthentication,)
    parser_classes = (ImportBodyParser,)
    schema = None  # OpenAI publishes the document of this API

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        """Return the handler of this API in place of the REST API's."""
        return errors.handle_exception


class ChatCompletionsView(OpenAIFaceView):
    """Chat completions."""

    def post(self, request: Request) -> HttpResponseBase:
        """Answer the last message, with a memory if the request names a session."""
        completion_request = parse_completion_request(request.data, request.headers)
        limits.count_turn(request)
        if completion_request.session_name:
            return self._answer_with_memory(request, completion_request)
        return self._answer_without_memory(request, completion_request)

    def _answer_with_memory(
        self, request: Request, completion_request: CompletionRequest
    ) -> HttpResponseBase:
        session = memory.get_or_create_session(request.user, completion_request)
        turn, after_seq = memory.start_or_resume_turn(session, completion_request)
        if completion_request.stream:
            return _stream_response(
                request,
                completion_request,
                memory.stream_parts(turn, after_seq),
                lambda: memory.build_context_headers(turn),
            )
        turn = service.wait_for_turn(turn.pk)
        text, reasoning, final_part = memory.load_answer(turn)
        token_count = final_part.usage.input if final_part.usage else None
        envelope = CompletionEnvelope(model=completion_request.model_name)
        return Response(
            envelope.format_completion(text, reasoning, final_part),
            headers=memory.build_context_headers(turn, token_count),
        )

    def _answer_without_memory(
        self, request: Request, completion_request: CompletionRequest
    ) -> HttpResponseBase:
        exchange = StatelessExchange(completion_request)
        if completion_request.stream:
            return _stream_response(
                request,
                completion_request,
                streams.add_heartbeats(exchange.stream_parts(), HEARTBEAT_SECONDS),
                exchange.build_headers,
            )
        # The model may take minutes, and other requests need this thread's connection meanwhile.
        close_old_connections()
        text, reasoning, final_part = async_to_sync(streams.collect_parts)(exchange.stream_parts())
        envelope = CompletionEnvelope(model=completion_request.model_name)
        return Response(
            envelope.format_completion(text, reasoning, final_part),
            headers=exchange.build_headers(),
        )


class ModelListView(OpenAIFaceView):
    """The language models that can be used."""

    def get(self, request: Request) -> Response:
        """Return all models on one page, as OpenAI does."""
        models = AiModel.objects.filter_usable().order_by("id")
        return Response({"object": "list", "data": [_format_model(model) for model in models]})


class ModelDetailView(OpenAIFaceView):
    """One language model."""

    def get(self, request: Request, name: str) -> Response:
        """Return the model of this name, or of `provider/name`."""
        return Response(_format_model(get_usable_model(name)))


class UnknownUrlView(OpenAIFaceView):
    """Any other path under /v1/."""

    authentication_classes = ()  # type: ignore[assignment]
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise the 404 problem for every method."""
        raise errors.OpenAIProblem(
            404, "unknown_url", f"Unknown request URL: {request.method} {request.path[:200]}."
        )


def _stream_response(
    request: Request,
    completion_request: CompletionRequest,
    parts: AsyncGenerator[StreamPart | None],
    build_headers: Callable[[], dict[str, str]],
) -> HttpResponseBase:
    """Return the answer as a stream.

    This waits for the first chunk, and holds a thread until then, so that an error before it can
    be the status of the response, and the headers can say what was sent.
    """
    close_old_connections()  # the stream opens connections for its own reads
    envelope = CompletionEnvelope(model=completion_request.model_name)
    stream = streams.stream_chunks(parts, envelope, include_usage=completion_request.include_usage)
    body = async_to_sync(streams.await_first_chunk)(stream)
    return hand_over_stream(
        request._request,
        body,
        content_type=event_streams.MEDIA_TYPE,
        headers=event_streams.HEADERS | build_headers(),
    )


def _format_model(model: AiModel) -> dict[str, Any]:
    """Return the model in OpenAI's form. `context_window` is our addition."""
    return {
        "id": str(model),
        "object": "model",
        "created": 0,
        "owned_by": model.provider.name,
        "context_window": model.context_window_size,
    }
