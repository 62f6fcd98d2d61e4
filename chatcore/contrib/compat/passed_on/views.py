"""The views of requests that are passed on."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from asgiref.sync import async_to_sync
from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.response import Response

from chatcore.accounts.spending import Purpose, Reservation, bound_output, end_call, reserve_call
from chatcore.base.rest import turn_rate
from chatcore.base.rest.auth import SignedInRequest
from chatcore.base.threads import run_in_thread
from chatcore.base.token_estimate import estimate_tokens
from chatcore.contrib.compat.chat_completions.completion_format import format_failure
from chatcore.contrib.compat.chat_completions.streams import hand_over
from chatcore.contrib.compat.chat_completions.views import CompatibleAPIView
from chatcore.contrib.compat.passed_on.request import PassedRequest, parse_passed_request
from chatcore.providers import openai as openai_provider
from chatcore.providers.base import Connection, parse_count
from chatcore.providers.openai import parse_usage
from chatcore.providers.registry import build_connection
from chatcore.providers.server_sent_events import EventSplitter
from chatcore.turns import capacity
from models_registry.prices import TokenUse


class PassedOnView(CompatibleAPIView):
    """A request that goes to the provider of its model; it counts as a turn."""

    path: ClassVar[str]

    def post(self, request: SignedInRequest) -> HttpResponseBase:
        """Return what the provider answers."""
        passed_request = parse_passed_request(request.user, self.path, request.data)
        slot = capacity.take_slot(request.user.pk)
        call: Reservation | None = None
        try:
            turn_rate.count_turn(request)
            connection = build_connection(passed_request.model.provider)
            call = _reserve_call(request, passed_request)
            # The provider may take long, and other requests need this thread's connection.
            close_old_connections()
            if passed_request.is_stream:
                stream = _stream_answer(connection, passed_request, call)
                return hand_over(request, stream, dict, slot.release)
            fetch_answer = async_to_sync(openai_provider.fetch_answer)
            answer = fetch_answer(connection, passed_request.path, passed_request.body)
            call.usage = parse_usage(answer.get("usage"))
        except BaseException as error:
            slot.release()
            if call:
                end_call(call, error)
            raise
        slot.release()
        end_call(call)
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
    """Yield the provider's stream. An error after its first bytes becomes an event."""
    has_started = False
    splitter = EventSplitter()
    failure: BaseException | None = None
    stream = openai_provider.stream_answer(connection, passed_request.path, passed_request.body)
    try:
        async with aclosing(stream):
            async for chunk in stream:
                has_started = True
                for _, data in splitter.feed(chunk):
                    _note_event(call, data)
                yield chunk
    except Exception as error:
        failure = error
        if not has_started:
            raise
        yield format_failure(error)
    finally:
        # Also for a client that has left, which closes this generator, or cancels its very end.
        await asyncio.shield(run_in_thread(end_call, call, failure))


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
