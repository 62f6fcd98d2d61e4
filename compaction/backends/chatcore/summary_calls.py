"""Call the language models of the registry to write summaries."""

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
    """The models that write summaries, and single calls of them without tools."""

    def choose_summary_model(self, session_id: UUID, model_name: str) -> SummaryModel:
        """Return the model that writes a session's summaries.

        It is the session's own, unless the registry or `model_name` names another. A provider whose
        option `summary_headings` is `bare` has models that copy explanations of headings.
        """
        session_model = _load_session_model(session_id)
        if session_model is None:
            return SummaryModel(model="")
        model = _find_named_model(session_model, model_name) or session_model
        return SummaryModel(
            model=str(model),
            echoes_headings=model.provider.options.get("summary_headings") == "bare",
            window=model.context_window_size,
            max_output_tokens=model.max_output_tokens,
        )

    def call_summary_model(self, session_id: UUID, prompt: Prompt) -> CallResult:
        """Send one request to the prompt's model, and return its answer. Raises CallFailed.

        A provider's option `summary_seconds` gives it more time than the policy does, because a
        slow machine needs minutes to read a full window.
        """
        model = _choose_model(session_id, prompt)
        deadline = max(prompt.timeout, model.provider.options.get("summary_seconds", 0))
        request = Request(
            model=model.name,
            system=prompt.system,
            messages=(ChatMessage(role="user", content=prompt.text),),
            max_tokens=prompt.max_tokens,
            params={} if prompt.temperature is None else {"temperature": prompt.temperature},
        )
        # The database connection goes back to the pool while the model writes.
        close_old_connections()
        try:
            # The caller counts its calls and pays for them, so the client must not repeat any.
            connection = build_connection(model.provider, max_retries=0, for_summary=True)
            text, stream_end = asyncio.run(_collect_answer(connection, request, deadline))
        except ContextOverflow as error:
            raise CallFailed(
                error.detail, too_long=True, tokens=error.tokens, window=error.window
            ) from None
        except ProviderRejected as error:
            is_about_temperature = "temperature" in error.detail.lower()
            raise CallFailed(error.detail, temperature=is_about_temperature) from None
        except ProviderError as error:
            raise CallFailed(error.detail) from None
        except TimeoutError:
            raise CallFailed(f"The summary was not finished within {deadline:g} seconds.") from None
        return _build_call_result(model, prompt, text, stream_end)


def _choose_model(session_id: UUID, prompt: Prompt) -> AiModel:
    """Return the prompt's model if it is usable, else the session's. Raises CallFailed."""
    model = None
    if prompt.model:
        model = AiModel.objects.filter_usable().find_by_name(prompt.model)
    model = model or _load_session_model(session_id)
    if model is None:
        raise CallFailed("The session has no language model.")
    return model


async def _collect_answer(
    connection: Connection, request: Request, deadline: float
) -> tuple[str, StreamEnd]:
    text_parts = []
    stream_end = None
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
    if stream_end.usage is None:
        input_tokens = estimate_stored_tokens(len(prompt.system) + len(prompt.text))
        output_tokens = estimate_stored_tokens(len(text))
    else:
        input_tokens = stream_end.usage.input
        output_tokens = stream_end.usage.output
    return CallResult(
        text=text,
        finish="tool_calls" if stream_end.tool_calls else stream_end.reason,
        model=str(model),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        input_price=model.input_price,
        output_price=model.output_price,
    )


def _load_session_model(session_id: UUID) -> AiModel | None:
    sessions = Session.objects.select_related("model__provider", "model__summary_model__provider")
    return sessions.get(pk=session_id).model


def _find_named_model(session_model: AiModel, model_name: str) -> AiModel | None:
    """Return the model that is named for summaries, or None if none is named or none can be used.

    The registry may name one for the session's model; otherwise the policy may. A model that cannot
    be used is skipped with a warning in the log.
    """
    summary_model = session_model.summary_model
    if summary_model is not None and summary_model.is_active and summary_model.provider.is_active:
        return summary_model
    policy_model = None
    if model_name != "same":
        policy_model = AiModel.objects.find_by_name(model_name)
    is_policy_model_missing = model_name != "same" and policy_model is None
    if summary_model is not None or is_policy_model_missing:
        logger.warning(
            "%s cannot write summaries for %s: it is unknown or not active",
            summary_model or model_name,
            session_model,
        )
    return policy_model
