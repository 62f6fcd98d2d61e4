"""The views of Anthropic's API."""

from collections.abc import AsyncGenerator, Callable
from typing import cast

from django.http.response import HttpResponseBase
from rest_framework.response import Response

from chatcore.base.rest import turn_rate
from chatcore.base.rest.auth import SignedInRequest
from chatcore.context.clearing import ClearedRequest
from chatcore.context.compactor import get_compactor
from chatcore.contrib.compat import answers
from chatcore.contrib.compat.chat_completions.streams import BegunStream, hand_over_late
from chatcore.contrib.compat.chat_completions.views import UnknownUrlView
from chatcore.contrib.compat.messages import compactions
from chatcore.contrib.compat.messages.errors import MessagesAPIView
from chatcore.contrib.compat.messages.message_form import MessageForm
from chatcore.contrib.compat.messages.message_format import (
    Compaction,
    MessageEnvelope,
    format_compaction_events,
    format_compaction_message,
)
from chatcore.contrib.compat.messages.request import (
    MessageRequest,
    parse_count_request,
    parse_message_request,
)
from chatcore.contrib.compat.programs import get_keeping
from chatcore.contrib.compat.web_search import serve_search
from chatcore.turns import capacity


class MessagesView(MessagesAPIView):
    """Messages."""

    def post(self, request: SignedInRequest) -> HttpResponseBase:
        """Answer the last message, with a memory if the request names a session."""
        message_request = _read_request(request, parse_message_request)
        edits = message_request.edits
        if edits.summarize is None and edits.compact is None:
            return answers.answer(request, message_request, MessageForm(message_request))
        if message_request.stream:
            return hand_over_late(
                request,
                lambda: cast(BegunStream, _compact_and_answer(request, message_request)),
                format_failure=MessageForm(message_request).format_failure,
            )
        return cast(Response, _compact_and_answer(request, message_request))


class CountTokensView(MessagesAPIView):
    """Counting the tokens of a request."""

    def post(self, request: SignedInRequest) -> Response:
        """Return how many tokens a request has. Nothing is stored or sent."""
        message_request = _read_request(request, parse_count_request)
        provider_request = MessageForm(message_request).build_provider_request()
        tokens = get_compactor().estimate_request(message_request.model, provider_request)
        count: dict[str, object] = {"input_tokens": tokens}
        if message_request.edits.are_named:
            original_tokens = tokens
            if isinstance(provider_request, ClearedRequest):
                original_tokens = provider_request.original_tokens
            count["context_management"] = {"original_input_tokens": original_tokens}
        return Response(count)


class UnknownMessagesUrlView(MessagesAPIView, UnknownUrlView):
    """Any other path under /v1/messages/."""


def _compact_and_answer(
    request: SignedInRequest, message_request: MessageRequest
) -> Response | BegunStream:
    """Compact as the request asks for it, and answer unless that is all it asks for."""
    edits = message_request.edits
    with capacity.take_slot(request.user.pk):
        if edits.summarize:
            turn_rate.count_turn(request)
            compaction = compactions.summarize(request.user, message_request, edits.summarize)
            return _show_compaction(message_request, compaction)
        assert edits.compact
        answered_request, early_compaction = compactions.compact_if_asked(
            request.user, message_request, edits.compact
        )
    if early_compaction and edits.compact.pause_after_compaction:
        turn_rate.count_turn(request)
        return _show_compaction(message_request, early_compaction)
    form = MessageForm(answered_request, early_compaction)
    return answers.begin_answer(request, answered_request, form)


def _read_request(request: SignedInRequest, parse: Callable[..., MessageRequest]) -> MessageRequest:
    """Return the request with what a compaction says that it begins with."""
    keeping = get_keeping(request.auth)
    message_request = parse(request.user, request.data, request.headers, keeping)
    message_request = serve_search(request.user, message_request, request.data)
    if not message_request.compaction:
        return message_request
    content = compactions.check_block(request.user, *message_request.compaction)
    return compactions.add_summary(request.user, message_request, content)


def _show_compaction(
    message_request: MessageRequest, compaction: Compaction
) -> Response | BegunStream:
    """Return a message that is a compaction alone."""
    envelope = MessageEnvelope(model=message_request.model_name)
    if not message_request.stream:
        message = format_compaction_message(envelope, compaction)
        return Response(message, headers=compaction.headers)
    chunks = _yield_once(format_compaction_events(envelope, compaction))
    return BegunStream(chunks=chunks, build_headers=lambda: compaction.headers)


async def _yield_once(chunk: bytes) -> AsyncGenerator[bytes]:
    yield chunk
