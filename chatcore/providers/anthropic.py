"""The Anthropic protocol: messages, spoken by Anthropic and by servers that imitate it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from chatcore.providers import anthropic_wire
from chatcore.providers import client as provider_client
from chatcore.providers.base import Connection, Part, Request
from chatcore.providers.error_mapping import translated

DEFAULT_MAX_TOKENS = 4096  # the protocol refuses a request that names none


class AnthropicProvider:
    """Messages. Options: `headers`, `query` and `body`, sent with each call."""

    async def stream(self, connection: Connection, request: Request) -> AsyncGenerator[Part]:
        """Send the request; yield its parts as they arrive. Raises the family in `errors`, and nothing else."""
        await provider_client.load("anthropic")
        import anthropic

        with translated(anthropic, connection):
            async with anthropic.AsyncAnthropic(
                **provider_client.client_options(anthropic, connection)
            ) as client:
                create: Any = client.messages.create
                arguments = _arguments(connection, request, create)
                answer = anthropic_wire.Answer(request.model)
                async with aclosing(
                    provider_client.paced(create(**arguments), connection.timeout_seconds)
                ) as events:
                    async for event in events:
                        for part in answer.read(event):
                            yield part
                yield answer.finished()


def _arguments(connection: Connection, request: Request, create: Any) -> dict[str, Any]:
    arguments = provider_client.accepted(
        create, provider_client.params_of(request), connection.options.get("body", {})
    )
    arguments |= {
        "model": request.model,
        "messages": anthropic_wire.messages(request),
        "max_tokens": request.max_tokens or request.params.get("max_tokens") or DEFAULT_MAX_TOKENS,
        "stream": True,
    }
    if system := anthropic_wire.system(request):
        arguments["system"] = system
    if request.tools:
        arguments["tools"] = anthropic_wire.tools(request)
    return arguments
