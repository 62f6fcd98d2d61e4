"""The OpenAI protocol, also spoken by Gemini, Mistral, Ollama, vLLM, llama.cpp and many others."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from chatcore.providers import client as provider_client
from chatcore.providers import openai_wire
from chatcore.providers.base import Connection, Request, StreamPart
from chatcore.providers.error_mapping import translate_errors


class OpenAIProvider:
    """Chat completions.

    Options of the provider's row: `headers`, `query` and `body`, which are sent with every call,
    and `max_tokens_field`.
    """

    sdk_name = "openai"

    async def stream(self, connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
        """Send the request, and yield its parts as they arrive. Raises only ProviderErrors."""
        await provider_client.load_sdk(self.sdk_name)
        import openai

        with translate_errors(openai, connection):
            async with openai.AsyncOpenAI(
                **provider_client.build_client_options(openai, connection)
            ) as client:
                create: Any = client.chat.completions.create
                arguments = _build_arguments(connection, request, create)
                stream_reader = openai_wire.OpenAIStreamReader(request.model)
                async with aclosing(
                    provider_client.stream_events(create(**arguments), connection.timeout_seconds)
                ) as chunks:
                    async for chunk in chunks:
                        for part in stream_reader.read_chunk(chunk):
                            yield part
                yield stream_reader.build_stream_end()

    def translate_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters unchanged: they are in this protocol's words already."""
        return dict(params)


def _build_arguments(connection: Connection, request: Request, create: Any) -> dict[str, Any]:
    arguments = provider_client.to_sdk_arguments(
        create, provider_client.select_params(request), connection.options.get("body", {})
    )
    arguments |= {
        "model": request.model,
        "messages": openai_wire.build_messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        arguments["tools"] = openai_wire.build_tools(request)
    if request.max_tokens:
        arguments[_choose_max_tokens_field(connection)] = request.max_tokens
    return arguments


def _choose_max_tokens_field(connection: Connection) -> str:
    # OpenAI's reasoning models refuse `max_tokens`; many compatible servers know nothing else.
    option = connection.options.get("max_tokens_field")
    if option:
        return str(option)
    is_openai = urlsplit(connection.base_url).hostname in (None, "api.openai.com")
    return "max_completion_tokens" if is_openai else "max_tokens"
