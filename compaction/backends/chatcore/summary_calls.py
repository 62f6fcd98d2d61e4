"""Summaries, written by the models of chatcore's registry."""

import asyncio
import logging
from uuid import UUID

from django.db import close_old_connections

from chatcore.models import Session
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import ChatMessage, Connection, Request, StreamEnd, TextDelta
from chatcore.providers.connections import build_connection
from chatcore.providers.errors import ContextOverflow, ProviderError, ProviderRejected
from compaction.backends.base import CallFailed, CallResult, Prompt, SummaryModel
from compaction.backends.chatcore.translation import estimate_stored_tokens
from models_registry.models import AiModel

logger = logging.getLogger(__name__)


class ChatcoreSummaryCaller:
    """One call without tools, and which model it goes to."""

    def choose_summary_model(self, session_id: UUID, model_name: str) -> SummaryModel:
        """Same model, provider and key as the conversation's, unless its model or the policy names another.

        A provider's option `summary_headings` says `bare` where its models give back what headings are for.
        """
        session_model = _load_session_model(session_id)
        model = (
            (_find_named_model(session_model, model_name) or session_model)
            if session_model
            else None
        )
        if model is None:
            return SummaryModel(model="")
        echoes_headings = model.provider.options.get("summary_headings") == "bare"
        return SummaryModel(
            model=str(model),
            echoes_headings=echoes_headings,
            window=model.context_window_size,
            max_output_tokens=model.max_output_tokens,
        )

    def call_summary_model(self, session_id: UUID, prompt: Prompt) -> CallResult:
        """A provider's option `summary_seconds` gives it longer than the policy does: a slow machine reads a full window in minutes."""
        model = (
            AiModel.objects.filter_usable().find_by_name(prompt.model) if prompt.model else None
        ) or _load_session_model(session_id)
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
            text, stream_end = asyncio.run(
                _collect_answer(
                    build_connection(model.provider, max_retries=0, for_summary=True),
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
        return _build_call_result(model, prompt, text, stream_end)


async def _collect_answer(
    connection: Connection, request: Request, deadline: float
) -> tuple[str, StreamEnd]:
    text_parts, stream_end = [], None
    async with asyncio.timeout(deadline):
        async for part in provider_registry.stream(connection, request):
            if isinstance(part, TextDelta):
                text_parts.append(part.text)
            elif isinstance(part, StreamEnd):
                stream_end = part
    if stream_end is None:
        raise CallFailed("The summary broke off.")
    return "".join(text_parts), stream_end


def _build_call_result(
    model: AiModel, prompt: Prompt, text: str, stream_end: StreamEnd
) -> CallResult:
    usage = stream_end.usage
    return CallResult(
        text=text,
        finish="tool_calls" if stream_end.tool_calls else stream_end.reason,
        model=str(model),
        input_tokens=usage.input
        if usage
        else estimate_stored_tokens(len(prompt.system) + len(prompt.text)),
        output_tokens=usage.output if usage else estimate_stored_tokens(len(text)),
        input_price=model.input_price,
        output_price=model.output_price,
    )


def _load_session_model(session_id: UUID) -> AiModel | None:
    return (
        Session.objects.select_related("model__provider", "model__summary_model__provider")
        .get(pk=session_id)
        .model
    )


def _find_named_model(session_model: AiModel, model_name: str) -> AiModel | None:
    """The model that the registry names for summaries of this one, else the policy's; None: neither, or none that can be used."""
    summary_model = session_model.summary_model
    if summary_model is not None and summary_model.is_active and summary_model.provider.is_active:
        return summary_model
    policy_model = AiModel.objects.find_by_name(model_name) if model_name != "same" else None
    if summary_model is not None or (policy_model is None and model_name != "same"):
        logger.warning(
            "%s cannot write summaries for %s: it is unknown or not active",
            summary_model or model_name,
            session_model,
        )
    return policy_model
