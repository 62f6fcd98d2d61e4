"""The views of requests that are passed on."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from asgiref.sync import async_to_sync
from django.db import DatabaseError, close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api import event_streams
from chatcore.events.long_responses import hand_over_stream
from chatcore.faces.chat_completions import streams
from chatcore.faces.chat_completions.views import OpenAIFaceView
from chatcore.faces.passed_on.request import PassedRequest, parse_passed_request
from chatcore.models import UsageSum
from chatcore.providers import openai as openai_provider
from chatcore.providers.base import Connection, Usage
from chatcore.providers.connections import build_connection
from chatcore.providers.openai_stream import parse_usage
from chatcore.rest import turn_rate
from chatcore.spending.records import record_call
from chatcore.turns import capacity

logger = logging.getLogger(__name__)


class PassedOnView(OpenAIFaceView):
    """A request that goes to the provider of its model; it counts as a turn."""

    path: ClassVar[str]

    def post(self, request: Request) -> HttpResponseBase:
        """Return what the provider answers."""
        passed_request = parse_passed_request(request.user, self.path, request.data)
        slot = capacity.take_slot(request.user.pk)
        try:
            turn_rate.count_turn(request)
            connection = build_connection(passed_request.model.provider)
            # The provider may take long, and other requests need this thread's connection.
            close_old_connections()
            if passed_request.is_stream:
                # The provider counts the tokens of a stream only where the client asks for it.
                _record_usage(request, passed_request, None)
                stream = _stream_answer(connection, passed_request)
                return hand_over_stream(
                    request._request,
                    async_to_sync(streams.await_first_chunk)(stream),
                    content_type=event_streams.MEDIA_TYPE,
                    headers=event_streams.HEADERS,
                    on_end=slot.release,
                )
            fetch_answer = async_to_sync(openai_provider.fetch_answer)
            answer = fetch_answer(connection, passed_request.path, passed_request.body)
            _record_usage(request, passed_request, parse_usage(answer.get("usage")))
        except BaseException:
            slot.release()
            raise
        slot.release()
        return Response(answer)


class EmbeddingsView(PassedOnView):
    """Embeddings."""

    path = "embeddings"


class CompletionsView(PassedOnView):
    """Completions of a prompt."""

    path = "completions"


def _record_usage(request: Request, passed_request: PassedRequest, usage: Usage | None) -> None:
    try:
        record_call(request.user.pk, passed_request.model, UsageSum.Purpose.PASSED_ON, usage)
    except DatabaseError:
        # The answer is paid for, so it must not fail for its record.
        logger.warning("the usage of %s was not stored", passed_request.model, exc_info=True)


async def _stream_answer(
    connection: Connection, passed_request: PassedRequest
) -> AsyncGenerator[bytes]:
    """Yield the provider's stream. An error after its first bytes becomes an event."""
    has_started = False
    stream = openai_provider.stream_answer(connection, passed_request.path, passed_request.body)
    try:
        async with aclosing(stream):
            async for chunk in stream:
                has_started = True
                yield chunk
    except Exception as error:
        if not has_started:
            raise
        yield streams.format_failure(error)
