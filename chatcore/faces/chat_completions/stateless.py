"""Answers without a memory: the request goes to its model as the client sent it, made to fit, and nothing of it is stored."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from django.db import DatabaseError

from chatcore.context import builder, tool_pairs
from chatcore.context.builder import Fit
from chatcore.faces.chat_completions.request import Asked
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import Finished, Part, Request, Tool
from chatcore.providers.connections import connection_to
from chatcore.providers.errors import ContextOverflow, ProviderUnavailable
from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.threads import in_thread

logger = logging.getLogger(__name__)


class Exchange:
    """One request and its answer; `fit` is what is sent. Raises ContextOverflow where the newest message alone is too large."""

    def __init__(self, asked: Asked) -> None:
        self.model = asked.model
        self.fit = _fitted(self, request_of(asked), None)

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

    async def parts(self) -> AsyncGenerator[Part]:
        """The answer. A request that the provider finds too long is sent once more, smaller. Raises the family of provider errors."""
        said = False
        try:
            async with aclosing(self._sent()) as parts:
                async for part in parts:
                    said = True
                    yield part
            return
        except ContextOverflow as error:
            if said:
                raise ProviderUnavailable(error.detail) from error
            self.fit = await in_thread(_fitted, self, self.fit.request, error)
        async with aclosing(self._sent()) as parts:
            async for part in parts:
                yield part

    async def _sent(self) -> AsyncGenerator[Part]:
        connection = await in_thread(connection_to, self.model.provider)
        async with aclosing(provider_registry.stream(connection, self.fit.request)) as parts:
            async for part in parts:
                if isinstance(part, Finished) and part.usage:
                    await in_thread(_learn, self, part.usage.input)
                yield part


def request_of(asked: Asked) -> Request:
    """What would be sent if it fits. Calls without results and results without calls, as clients leave them that cut their own history,
    are mended as in a session."""
    params = dict(asked.params)
    max_tokens = params.pop("max_tokens", None)
    return Request(
        model=asked.model.name,
        system=asked.system or "",
        messages=tool_pairs.paired(
            [each.as_sent(sees=asked.model.supports_images) for each in asked.said]
        ),
        tools=[Tool(**tool) for tool in asked.tools],
        max_tokens=max_tokens,
        params=params,
    )


def _fitted(exchange: Exchange, request: Request, refused: ContextOverflow | None) -> Fit:
    guard = builder.guard()
    if guard is not None:
        earlier = exchange.fit if refused else None
        fit = guard.fit(exchange.model, request, refused=refused)
        cut = earlier is not None and earlier.context_version is None
        return Fit(
            request=fit.request,
            context_version=None if cut else fit.context_version,
            tokens=fit.tokens,
        )
    if refused is not None:
        raise refused
    return Fit(request=request, context_version=0)


def _learn(exchange: Exchange, tokens: int) -> None:
    guard = builder.guard()
    try:
        if guard is not None:
            guard.learn(exchange.model, exchange.fit.request, tokens)
    except DatabaseError:
        logger.warning("what %s counted was not learned", exchange.model, exc_info=True)
