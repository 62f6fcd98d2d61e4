"""Answers without a memory: the request is made to fit and sent to its model; nothing is stored."""

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from django.db import DatabaseError

from chatcore.accounts.spending import Purpose, Reservation, end_call, expect_use, reserve_call
from chatcore.base.threads import run_in_thread
from chatcore.base.token_estimate import estimate_tokens
from chatcore.context.compactor import FittedRequest, get_compactor
from chatcore.contrib.compat.chat_completions.request import TRIMMED_HEADER
from chatcore.contrib.compat.content_parts import join_texts
from chatcore.providers import normal_form
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import ChatMessage, Request, StreamEnd, StreamPart
from chatcore.providers.errors import (
    ContextOverflow,
    ImagesRefused,
    ProviderError,
    ProviderUnavailable,
)
from chatcore.providers.registry import build_connection
from chatcore.turns.client_tools import build_tool
from chatcore.turns.refused_calls import (
    WHERE_TO_CHANGE_IMAGES,
    OverflowTries,
    describe_what_remains,
    is_refusal_for_length,
    refuse_silence,
)
from models_registry.models import AiModel

logger = logging.getLogger(__name__)


class StatelessExchange:
    """One request and its answer. `fit` is what is sent, after it was made to fit the window.

    Raises ContextOverflow if the newest message alone is too large.
    """

    def __init__(self, model: AiModel, request: Request, *, owner_id: object) -> None:
        self.model = model
        self.owner_id = owner_id
        self.fit = get_compactor().fit_request(self.model, request)
        self.has_begun = False  # from then on nothing refuses what belongs to this answer

    @property
    def is_shortened(self) -> bool:
        """True if messages were left out."""
        return self.fit.context_version is None

    def build_headers(self) -> dict[str, str]:
        """Return headers about what was sent: its tokens, and whether it was shortened."""
        tokens = self.fit.tokens
        if tokens is None:
            request = self.fit.request
            message_chars = sum(len(message.content) for message in request.messages)
            tokens = estimate_tokens(len(request.system) + message_chars)
        is_shortened = "true" if self.is_shortened else "false"
        return {
            "X-Context-Tokens": str(tokens),
            "X-Context-Compacted": is_shortened,
            TRIMMED_HEADER: is_shortened,
        }

    async def stream_parts(self) -> AsyncGenerator[StreamPart]:
        """Yield the answer. A request that the provider finds too long is sent again, shorter.

        Raises the errors of `providers.errors`.
        """
        tries = OverflowTries()
        has_started = False
        while True:
            try:
                async with aclosing(self._stream_provider()) as parts:
                    async for part in parts:
                        if isinstance(part, StreamEnd) and not has_started:
                            refuse_silence(self.fit.request, part)
                        has_started = True
                        yield part
            except ImagesRefused as error:
                await run_in_thread(self.model.note_refused, "supports_images")
                raise ImagesRefused(f"{error.detail} {WHERE_TO_CHANGE_IMAGES}") from None
            except ProviderError as error:
                if not is_refusal_for_length(error):
                    raise
                # The client already has a part of the answer, so another answer cannot begin.
                if has_started:
                    raise ProviderUnavailable(error.detail) from error
                await run_in_thread(self._fit_again, tries, error)
            else:
                await run_in_thread(tries.keep_window, self.model, self.fit.request)
                return

    async def _stream_provider(self) -> AsyncGenerator[StreamPart]:
        connection = await run_in_thread(build_connection, self.model.provider)
        call = await run_in_thread(self._reserve_call)
        stream = provider_registry.stream(connection, self.fit.request)
        async with call, aclosing(stream) as parts:
            async for part in parts:
                call.note_part(part)
                if isinstance(part, StreamEnd):
                    await run_in_thread(self._end_call, call)
                yield part

    def _reserve_call(self) -> Reservation:
        expected = expect_use(self.model, self.fit.request, tokens=self.fit.tokens)
        call = reserve_call(
            self.owner_id,
            self.model,
            Purpose.ANSWER,
            expected,
            may_refuse=not self.has_begun,
        )
        self.has_begun = True
        return call

    def _fit_again(self, tries: OverflowTries, error: ProviderError) -> None:
        """Make the request smaller than before. Raises the error if that is not possible."""
        request = self.fit.request
        size = get_compactor().estimate_request(self.model, request)
        tries.note_refusal(size, error)
        fit = self._ask_policy(error) if len(tries.sizes) == 1 else None
        if fit is None or get_compactor().estimate_request(self.model, fit.request) >= size:
            fit = get_compactor().shorten_request(
                self.model, request, limit_tokens=tries.choose_limit()
            )
        if fit is None:
            raise tries.build_final_error(error, describe_what_remains(self.model, request))
        was_shortened = self.is_shortened
        self.fit = FittedRequest(
            request=fit.request,
            context_version=None if was_shortened else fit.context_version,
            tokens=fit.tokens,
        )

    def _ask_policy(self, error: ProviderError) -> FittedRequest | None:
        if not isinstance(error, ContextOverflow):
            return None
        try:
            return get_compactor().fit_request(self.model, self.fit.request, overflow=error)
        except ContextOverflow:
            return None

    def _end_call(self, call: Reservation) -> None:
        end_call(call)
        if call.usage:
            try:
                get_compactor().learn_from_answer(
                    self.model, self.fit.request, counted_tokens=call.usage.input
                )
            except DatabaseError:
                logger.warning("the size of a request was not learned", exc_info=True)


def build_provider_request(
    model: AiModel,
    texts: Iterable[str | None],
    messages: Sequence[ChatMessage],
    tools: Iterable[Mapping[str, Any]],
    params: Mapping[str, Any],
) -> Request:
    """Build the request for the provider, before it is made to fit.

    Clients that cut their own history leave calls without results and results without calls. These
    are repaired as in a session.
    """
    other_params = {name: value for name, value in params.items() if name != "max_tokens"}
    return Request(
        model=model.name,
        system=join_texts(texts),
        messages=list(normal_form.pair_tool_calls(messages)),
        tools=[build_tool(tool) for tool in tools],
        max_tokens=params.get("max_tokens"),
        params=other_params,
    )
