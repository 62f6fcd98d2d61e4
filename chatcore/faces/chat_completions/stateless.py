"""Answers without a memory: the request goes to its model as the client sent it, made to fit, and nothing of it is stored."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from django.db import DatabaseError

from chatcore.context import builder, tool_pairs
from chatcore.context.builder import FittedRequest
from chatcore.faces.chat_completions.request import CompletionRequest
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import Request, StreamEnd, StreamPart, Tool
from chatcore.providers.connections import build_connection
from chatcore.providers.errors import ContextOverflow, ProviderUnavailable
from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.threads import run_in_thread

logger = logging.getLogger(__name__)


class StatelessExchange:
    """One request and its answer; `fit` is what is sent. Raises ContextOverflow where the newest message alone is too large."""

    def __init__(self, completion_request: CompletionRequest) -> None:
        self.model = completion_request.model
        self.fit = _fit_request(self, build_provider_request(completion_request), None)

    @property
    def headers(self) -> dict[str, str]:
        """What the client may know of what was sent."""
        tokens = self.fit.tokens
        if tokens is None:
            tokens = estimate_tokens(
                len(self.fit.request.system)
                + sum(len(message.content) for message in self.fit.request.messages)
            )
        return {
            "X-Context-Tokens": str(tokens),
            "X-Context-Compacted": "true" if self.fit.context_version is None else "false",
        }

    async def stream_parts(self) -> AsyncGenerator[StreamPart]:
        """The answer. A request that the provider finds too long is sent once more, smaller. Raises the family of provider errors."""
        has_started = False
        try:
            async with aclosing(self._stream_provider()) as parts:
                async for part in parts:
                    has_started = True
                    yield part
            return
        except ContextOverflow as error:
            if has_started:
                raise ProviderUnavailable(error.detail) from error
            self.fit = await run_in_thread(_fit_request, self, self.fit.request, error)
        async with aclosing(self._stream_provider()) as parts:
            async for part in parts:
                yield part

    async def _stream_provider(self) -> AsyncGenerator[StreamPart]:
        connection = await run_in_thread(build_connection, self.model.provider)
        async with aclosing(provider_registry.stream(connection, self.fit.request)) as parts:
            async for part in parts:
                if isinstance(part, StreamEnd) and part.usage:
                    await run_in_thread(_learn_token_count, self, part.usage.input)
                yield part


def build_provider_request(completion_request: CompletionRequest) -> Request:
    """What would be sent if it fits. Calls without results and results without calls, as clients leave them that cut their own history,
    are mended as in a session."""
    params = dict(completion_request.params)
    max_tokens = params.pop("max_tokens", None)
    return Request(
        model=completion_request.model.name,
        system=completion_request.system or "",
        messages=tool_pairs.pair_tool_calls(
            [
                message.to_chat_message(supports_images=completion_request.model.supports_images)
                for message in completion_request.messages
            ]
        ),
        tools=[Tool(**tool) for tool in completion_request.tools],
        max_tokens=max_tokens,
        params=params,
    )


def _fit_request(
    exchange: StatelessExchange, request: Request, overflow: ContextOverflow | None
) -> FittedRequest:
    guard = builder.load_guard()
    if guard is not None:
        previous_fit = exchange.fit if overflow else None
        fit = guard.fit_request(exchange.model, request, overflow=overflow)
        is_trimmed = previous_fit is not None and previous_fit.context_version is None
        return FittedRequest(
            request=fit.request,
            context_version=None if is_trimmed else fit.context_version,
            tokens=fit.tokens,
        )
    if overflow is not None:
        raise overflow
    return FittedRequest(request=request, context_version=0)


def _learn_token_count(exchange: StatelessExchange, tokens: int) -> None:
    guard = builder.load_guard()
    try:
        if guard is not None:
            guard.learn_token_count(exchange.model, exchange.fit.request, tokens)
    except DatabaseError:
        logger.warning("what %s counted was not learned", exchange.model, exc_info=True)
