"""Summaries, written by the models of chatcore's registry."""

import asyncio
import logging
from uuid import UUID

from django.db import close_old_connections

from chatcore.models import Session
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import ChatMessage, Connection, Finished, Request, TextDelta
from chatcore.providers.connections import connection_to
from chatcore.providers.errors import ContextOverflow, ProviderError, ProviderRejected
from compaction.backends.base import Answer, CallFailed, Prompt, Writer
from compaction.backends.chatcore.translation import stored_tokens
from models_registry.models import AiModel

logger = logging.getLogger(__name__)


class Writing:
    """One call without tools, and which model it goes to."""

    def writer(self, session_id: UUID, wanted: str) -> Writer:
        """Same model, provider and key as the conversation's, unless its model or the policy names another.

        A provider's option `summary_headings` says `bare` where its models give back what headings are for.
        """
        own = _own(session_id)
        model = (_named_writer(own, wanted) or own) if own else None
        if model is None:
            return Writer(model="")
        echoes = model.provider.options.get("summary_headings") == "bare"
        return Writer(
            model=str(model),
            echoes=echoes,
            window=model.context_window_size,
            max_output=model.max_output_tokens,
        )

    def ask(self, session_id: UUID, prompt: Prompt) -> Answer:
        """A provider's option `summary_seconds` gives it longer than the policy does: a slow machine reads a full window in minutes."""
        model = (AiModel.objects.usable().named(prompt.model) if prompt.model else None) or _own(
            session_id
        )
        if model is None:
            raise CallFailed("The session has no language model.")
        deadline = max(prompt.timeout, model.provider.options.get("summary_seconds", 0))
        request = Request(
            model=model.name,
            system=prompt.system,
            messages=(ChatMessage(role="user", content=prompt.text),),
            max_tokens=prompt.max_tokens,
            params={} if prompt.temperature is None else {"temperature": prompt.temperature},
        )
        close_old_connections()  # a pooled one is others' while the model writes
        try:
            text, finished = asyncio.run(
                _collect(
                    connection_to(model.provider, max_retries=0, for_summary=True),
                    request,
                    deadline,
                )
            )
        except ContextOverflow as error:
            raise CallFailed(
                error.detail, too_long=True, tokens=error.tokens, window=error.window
            ) from None
        except ProviderRejected as error:
            raise CallFailed(
                error.detail, temperature="temperature" in error.detail.lower()
            ) from None
        except ProviderError as error:
            raise CallFailed(error.detail) from None
        except TimeoutError:
            raise CallFailed(f"The summary was not finished within {deadline:g} seconds.") from None
        return _answer(model, prompt, text, finished)


async def _collect(
    connection: Connection, request: Request, deadline: float
) -> tuple[str, Finished]:
    said, finished = [], None
    async with asyncio.timeout(deadline):
        async for part in provider_registry.stream(connection, request):
            if isinstance(part, TextDelta):
                said.append(part.text)
            elif isinstance(part, Finished):
                finished = part
    if finished is None:
        raise CallFailed("The summary broke off.")
    return "".join(said), finished


def _answer(model: AiModel, prompt: Prompt, text: str, finished: Finished) -> Answer:
    usage = finished.usage
    return Answer(
        text=text,
        finish="tool_calls" if finished.tool_calls else finished.reason,
        model=str(model),
        input_tokens=usage.input if usage else stored_tokens(len(prompt.system) + len(prompt.text)),
        output_tokens=usage.output if usage else stored_tokens(len(text)),
        input_price=model.input_price,
        output_price=model.output_price,
    )


def _own(session_id: UUID) -> AiModel | None:
    return (
        Session.objects.select_related("model__provider", "model__summary_model__provider")
        .get(pk=session_id)
        .model
    )


def _named_writer(own: AiModel, wanted: str) -> AiModel | None:
    """The model that the registry names for summaries of this one, else the policy's; None: neither, or none that can be used."""
    chosen = own.summary_model
    if chosen is not None and chosen.is_active and chosen.provider.is_active:
        return chosen
    found = AiModel.objects.named(wanted) if wanted != "same" else None
    if chosen is not None or (found is None and wanted != "same"):
        logger.warning(
            "%s cannot write summaries for %s: it is unknown or not active", chosen or wanted, own
        )
    return found
