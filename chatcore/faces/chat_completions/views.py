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
from chatcore.events.long_responses import hand_over_stream
from chatcore.faces.chat_completions import errors, memory, responses
from chatcore.faces.chat_completions.request import (
    CompletionRequest,
    get_usable_model,
    parse_completion_request,
)
from chatcore.faces.chat_completions.responses import (
    CompletionEnvelope,
    add_heartbeats,
    collect_parts,
    stream_chunks,
)
from chatcore.faces.chat_completions.stateless import StatelessExchange
from chatcore.providers.errors import ProviderError
from chatcore.rest import limits
from chatcore.rest.auth import BearerTokenAuthentication
from chatcore.rest.parsers import ImportBodyParser
from chatcore.turns import service
from models_registry.models import AiModel

Parts = Any  # an asynchronous generator of parts


class OpenAIFaceView(APIView):
    """What the routes have in common: tokens alone, and refusals in OpenAI's words."""

    authentication_classes = (BearerTokenAuthentication,)
    parser_classes = (ImportBodyParser,)
    schema = None  # the document of this face is OpenAI's own

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        """Not the REST face's."""
        return errors.handle_exception


class ChatCompletionsView(OpenAIFaceView):
    """Chat completions."""

    def post(self, request: Request) -> HttpResponseBase:
        """Answer the last message: with a memory where the request names a session, else by what the request holds alone."""
        completion_request = parse_completion_request(request.data, request.headers)
        limits.count_turn(request)
        try:
            return (
                self._answer_with_memory(request, completion_request)
                if completion_request.session_name
                else self._answer_without_memory(request, completion_request)
            )
        except ProviderError as error:
            raise errors.from_provider_error(error) from None

    def _answer_with_memory(
        self, request: Request, completion_request: CompletionRequest
    ) -> HttpResponseBase:
        turn, after_seq = memory.start_or_resume_turn(
            memory.get_or_create_session(request.user, completion_request), completion_request
        )
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
        return Response(
            CompletionEnvelope(model=completion_request.model_name).format_completion(
                text, reasoning, final_part
            ),
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
                add_heartbeats(exchange.stream_parts(), HEARTBEAT_SECONDS),
                lambda: exchange.headers,
            )
        close_old_connections()  # a pooled one is others' while the model answers
        text, reasoning, final_part = async_to_sync(collect_parts)(exchange.stream_parts())
        return Response(
            CompletionEnvelope(model=completion_request.model_name).format_completion(
                text, reasoning, final_part
            ),
            headers=exchange.headers,
        )


class ModelListView(OpenAIFaceView):
    """The language models that can be used."""

    def get(self, request: Request) -> Response:
        """All of them, as OpenAI lists its own."""
        return Response(
            {
                "object": "list",
                "data": [
                    _format_model(model) for model in AiModel.objects.filter_usable().order_by("id")
                ],
            }
        )


class ModelDetailView(OpenAIFaceView):
    """One language model."""

    def get(self, request: Request, name: str) -> Response:
        """By its name, or `provider/name`."""
        return Response(_format_model(get_usable_model(name)))


class UnknownUrlView(OpenAIFaceView):
    """An address under /v1/ that is none."""

    authentication_classes = ()  # type: ignore[assignment]
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Whatever the method is."""
        raise errors.OpenAIProblem(
            404, "unknown_url", f"Unknown request URL: {request.method} {request.path[:200]}."
        )


def _stream_response(
    request: Request,
    completion_request: CompletionRequest,
    parts: Parts,
    headers: Callable[[], dict[str, str]],
) -> HttpResponseBase:
    """The answer as it is said. What fails before the first word is raised, and is the response's status; until then it holds a thread."""
    close_old_connections()  # its own reads bring their own connections
    stream = stream_chunks(
        parts,
        CompletionEnvelope(model=completion_request.model_name),
        include_usage=completion_request.include_usage,
    )
    body = async_to_sync(responses.await_first_chunk)(stream)
    return hand_over_stream(
        request._request,
        body,
        content_type=event_streams.MEDIA_TYPE,
        headers=event_streams.HEADERS | headers(),
    )


def _format_model(model: AiModel) -> dict[str, Any]:
    """`context_window` is an extra that OpenAI's clients pass on."""
    return {
        "id": str(model),
        "object": "model",
        "created": 0,
        "owned_by": model.provider.name,
        "context_window": model.context_window_size,
    }
