"""The OpenAI protocol, spoken by OpenAI itself and by nearly everybody else: Gemini, Mistral, Ollama, vLLM, llama.cpp."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from chatcore.providers import client as provider_client
from chatcore.providers import openai_wire
from chatcore.providers.base import Connection, Part, Request
from chatcore.providers.error_mapping import translated


class OpenAIProvider:
    """Chat completions. Options: `headers`, `query`, `body` (sent with each call) and `max_tokens_field`."""

    async def stream(self, connection: Connection, request: Request) -> AsyncGenerator[Part]:
        """Send the request; yield its parts as they arrive. Raises the family in `errors`, and nothing else."""
        await provider_client.load("openai")
        import openai

        with translated(openai, connection):
            async with openai.AsyncOpenAI(
                **provider_client.client_options(openai, connection)
            ) as client:
                create: Any = client.chat.completions.create
                arguments = _arguments(connection, request, create)
                answer = openai_wire.Answer(request.model)
                async with aclosing(
                    provider_client.paced(create(**arguments), connection.timeout_seconds)
                ) as chunks:
                    async for chunk in chunks:
                        for part in answer.read(chunk):
                            yield part
                yield answer.finished()


def _arguments(connection: Connection, request: Request, create: Any) -> dict[str, Any]:
    arguments = provider_client.accepted(
        create, provider_client.params_of(request), connection.options.get("body", {})
    )
    arguments |= {
        "model": request.model,
        "messages": openai_wire.messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        arguments["tools"] = openai_wire.tools(request)
    if request.max_tokens:
        arguments[_max_tokens_field(connection)] = request.max_tokens
    return arguments


def _max_tokens_field(connection: Connection) -> str:
    """OpenAI's reasoning models refuse `max_tokens`; many compatible servers know nothing else."""
    own = urlsplit(connection.base_url).hostname in (None, "api.openai.com")
    return str(
        connection.options.get("max_tokens_field")
        or ("max_completion_tokens" if own else "max_tokens")
    )
