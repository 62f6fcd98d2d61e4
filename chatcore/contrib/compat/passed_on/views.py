"""The views of requests that are passed on."""

import json
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from typing import ClassVar

from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.response import Response

from chatcore.accounts.spending import Purpose, Reservation, bound_output, reserve_call
from chatcore.api.long_responses import run_for_client
from chatcore.base.rest import turn_rate
from chatcore.base.rest.auth import SignedInRequest
from chatcore.base.token_estimate import estimate_tokens
from chatcore.contrib.compat.chat_completions.streams import (
    HEARTBEAT_COMMENT,
    add_heartbeats,
    hand_over,
)
from chatcore.contrib.compat.chat_completions.views import CompatibleAPIView
from chatcore.contrib.compat.passed_on.request import PassedRequest, parse_passed_request
from chatcore.providers import openai as openai_provider
from chatcore.providers.base import Connection, parse_count
from chatcore.providers.openai import parse_usage
from chatcore.providers.registry import build_connection
from chatcore.providers.server_sent_events import EventSplitter
from chatcore.turns import capacity
from models_registry.prices import TokenUse

EVENT_ENDS = (b"\n\n", b"\r\n\r\n")


class PassedOnView(CompatibleAPIView):
    """A request that goes to the provider of its model; it counts as a turn."""

    path: ClassVar[str]

    def post(self, request: SignedInRequest) -> HttpResponseBase:
        """Return what the provider answers."""
        passed_request = parse_passed_request(request.user, self.path, request.data)
        with ExitStack() as held:
            slot = held.enter_context(capacity.take_slot(request.user.pk))
            turn_rate.count_turn(request)
            connection = build_connection(passed_request.model.provider)
            call = held.enter_context(_reserve_call(request, passed_request))
            # The provider may take long, and other requests need this thread's connection.
            close_old_connections()
            if passed_request.is_stream:
                stream = _add_comments(_stream_answer(connection, passed_request, call))
                response = hand_over(request, stream, dict, on_end=slot.release)
                held.pop_all()  # the stream ends the call
                return response
            answer = run_for_client(
                request,
                openai_provider.fetch_answer(connection, passed_request.path, passed_request.body),
            )
            call.usage = parse_usage(answer.get("usage"))
            return Response(answer)


class EmbeddingsView(PassedOnView):
    """Embeddings."""

    path = "embeddings"


class CompletionsView(PassedOnView):
    """Completions of a prompt."""

    path = "completions"


def _reserve_call(request: SignedInRequest, passed_request: PassedRequest) -> Reservation:
    body, model = passed_request.body, passed_request.model
    text = json.dumps(body.get("prompt") or body.get("input"), ensure_ascii=False)
    output = 0
    if passed_request.path == CompletionsView.path:
        answers = max(parse_count(body.get(name)) or 1 for name in ("n", "best_of"))
        output = answers * bound_output(model, parse_count(body.get("max_tokens")))
    expected = TokenUse(input=estimate_tokens(len(text)), output=output)
    return reserve_call(request.user.pk, model, Purpose.PASSED_ON, expected)


async def _stream_answer(
    connection: Connection, passed_request: PassedRequest, call: Reservation
) -> AsyncGenerator[bytes]:
    """Yield the provider's stream."""
    splitter = EventSplitter()
    stream = openai_provider.stream_answer(connection, passed_request.path, passed_request.body)
    async with call, aclosing(stream):
        async for chunk in stream:
            for _, data in splitter.feed(chunk):
                _note_event(call, data)
            yield chunk


async def _add_comments(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield a provider's stream, and comments between its events while nothing comes."""
    is_between_events = True
    async with aclosing(add_heartbeats(chunks)) as parts:
        async for chunk in parts:
            if chunk is not None:
                is_between_events = chunk.endswith(EVENT_ENDS)
                yield chunk
            elif is_between_events:
                yield HEARTBEAT_COMMENT


def _note_event(call: Reservation, data: bytes) -> None:
    """Count the text of an event, and keep the usage, which comes only if the client asked."""
    try:
        event = json.loads(data)
    except ValueError:
        return
    if isinstance(event, dict):
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            call.output_chars += len(str(choice.get("text"))) if isinstance(choice, dict) else 0
        call.usage = parse_usage(event.get("usage")) or call.usage
