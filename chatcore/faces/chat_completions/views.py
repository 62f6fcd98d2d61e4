"""The views of OpenAI's API."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from asgiref.sync import async_to_sync
from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api import event_streams
from chatcore.api.turn_responses import wait_for_end
from chatcore.events.log import HEARTBEAT_SECONDS
from chatcore.events.long_responses import call_at_end, hand_over_stream
from chatcore.faces.chat_completions import errors, memory, streams
from chatcore.faces.chat_completions.client_watch import ClientWatch
from chatcore.faces.chat_completions.completion_format import CompletionEnvelope
from chatcore.faces.chat_completions.request import (
    CompletionRequest,
    get_usable_model,
    parse_completion_request,
)
from chatcore.faces.chat_completions.side_calls import is_side_call
from chatcore.faces.chat_completions.stateless import (
    StatelessExchange,
    build_provider_request,
)
from chatcore.providers.base import StreamPart
from chatcore.rest import turn_rate
from chatcore.rest.auth import BearerTokenAuthentication
from chatcore.rest.parsers import ImportBodyParser
from chatcore.slots import Slot
from chatcore.turns import capacity
from models_registry.models import AiModel


class OpenAIFaceView(APIView):
    """A view with errors in OpenAI's form. It accepts bearer tokens only, no cookies."""

    authentication_classes = (BearerTokenAuthentication,)
    parser_classes = (ImportBodyParser,)
    schema = None  # OpenAI publishes the document of this API

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Add the headers about the user's limit of turns."""
        response = super().finalize_response(request, response, *args, **kwargs)
        if request.user:  # None for somebody who has not signed in
            for name, value in turn_rate.build_turn_headers(request.user.pk).items():
                response.headers[name] = value
        return response

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        """Return the handler of this API in place of the REST API's."""
        return errors.handle_exception


class ChatCompletionsView(OpenAIFaceView):
    """Chat completions."""

    def post(self, request: Request) -> HttpResponseBase:
        """Answer the last message, with a memory if the request names a session."""
        completion_request = parse_completion_request(request.data, request.headers)
        if completion_request.session_name:
            session = memory.find_session(request.user, completion_request)
            if not is_side_call(completion_request, session):
                return self._answer_with_memory(request, completion_request)
        slot = capacity.take_slot(request.user.pk)
        try:
            turn_rate.count_turn(request)
            return self._answer_without_memory(request, completion_request, slot)
        except BaseException:
            slot.release()
            raise

    def _answer_with_memory(
        self, request: Request, completion_request: CompletionRequest
    ) -> HttpResponseBase:
        with _reserve_turn(request, completion_request):
            turn_rate.count_turn(request)
            session = memory.get_or_create_session(request.user, completion_request)
            turn, after_seq = memory.start_or_resume_turn(session, completion_request)
        watch = ClientWatch(turn)
        call_at_end(request._request, watch.stop_unless_over)
        if completion_request.stream:
            return _stream_response(
                request,
                completion_request,
                watch.watch_parts(memory.stream_parts(turn, after_seq)),
                lambda: memory.build_context_headers(turn),
                watch.stop_unless_over,
            )
        try:
            turn = wait_for_end(turn)
        finally:
            watch.finish()
        text, reasoning, final_part = memory.load_answer(turn)
        token_count = final_part.usage.input if final_part.usage else None
        envelope = CompletionEnvelope(model=completion_request.model_name)
        return Response(
            envelope.format_completion(text, reasoning, final_part),
            headers=memory.build_context_headers(turn, token_count)
            | _build_ignored_header(completion_request),
        )

    def _answer_without_memory(
        self, request: Request, completion_request: CompletionRequest, slot: Slot
    ) -> HttpResponseBase:
        """Answer the request. The slot is released with the end of the answer."""
        exchange = StatelessExchange(
            completion_request.model, build_provider_request(completion_request)
        )
        if completion_request.stream:
            return _stream_response(
                request,
                completion_request,
                streams.add_heartbeats(exchange.stream_parts(), HEARTBEAT_SECONDS),
                exchange.build_headers,
                slot.release,
            )
        # The model may take minutes, and other requests need this thread's connection meanwhile.
        close_old_connections()
        text, reasoning, final_part = async_to_sync(streams.collect_parts)(exchange.stream_parts())
        slot.release()
        envelope = CompletionEnvelope(model=completion_request.model_name)
        return Response(
            envelope.format_completion(text, reasoning, final_part),
            headers=exchange.build_headers() | _build_ignored_header(completion_request),
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


def _reserve_turn(
    request: Request, completion_request: CompletionRequest
) -> contextlib.AbstractContextManager[None]:
    """Reserve a place before anything is stored, also the session.

    Results of tools may be repeated ones, which need no place; what they start takes its own.
    """
    if completion_request.messages[-1].role == "tool":
        return contextlib.nullcontext()
    return capacity.reserve_turn(request.user.pk)


def _stream_response(
    request: Request,
    completion_request: CompletionRequest,
    parts: AsyncGenerator[StreamPart | None],
    build_headers: Callable[[], dict[str, str]],
    on_end: Callable[[], object],
) -> HttpResponseBase:
    """Return the answer as a stream; `on_end` is called at its end, or when its client leaves.

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
        headers=event_streams.HEADERS | build_headers() | _build_ignored_header(completion_request),
        on_end=on_end,
    )


def _build_ignored_header(completion_request: CompletionRequest) -> dict[str, str]:
    names = completion_request.ignored_fields
    return {"X-Ignored-Fields": ", ".join(names)} if names else {}


def _format_model(model: AiModel) -> dict[str, Any]:
    """Return the model in OpenAI's form. `context_window` is our addition."""
    return {
        "id": str(model),
        "object": "model",
        "created": 0,
        "owned_by": model.provider.name,
        "context_window": model.context_window_size,
    }
