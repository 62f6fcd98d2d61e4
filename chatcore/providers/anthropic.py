"""The Anthropic protocol, Messages, also spoken by compatible servers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from chatcore.providers import anthropic_params, anthropic_stream, anthropic_wire, platforms
from chatcore.providers import client as provider_client
from chatcore.providers.base import Connection, Request, StreamPart
from chatcore.providers.dialects import find_dialect
from chatcore.providers.error_mapping import translate_errors
from chatcore.providers.server_facts import select_fields

DEFAULT_MAX_TOKENS = 4096  # the protocol refuses a request without max_tokens

_PLATFORM_CLIENTS = {
    "bedrock": platforms.build_bedrock_client,
    "vertex": platforms.build_vertex_client,
}


class AnthropicProvider:
    """Messages.

    Options of the provider's row: `headers`, `query` and `body`, which are sent with every call,
    `dialect` (`dialects.py`), and `client` (see `platforms.py`).
    """

    sdk_name = "anthropic"

    async def stream(self, connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
        """Send the request, and yield its parts as they arrive. Raises only ProviderErrors."""
        await provider_client.load_sdk(self.sdk_name)
        import anthropic

        with translate_errors(anthropic, connection, request):
            options = await provider_client.build_client_options(anthropic, connection)
            client = platforms.build_client(
                anthropic, connection, options, usual="AsyncAnthropic", others=_PLATFORM_CLIENTS
            )
            create: Any = client.messages.create
            arguments = _build_arguments(connection, request, create)
            reader = anthropic_stream.AnthropicStreamReader(
                request.model, reports_thoughts=request.wants_thoughts
            )
            async with aclosing(
                provider_client.stream_parts(
                    create(**arguments), reader, connection.timeout_seconds
                )
            ) as parts:
                async for part in parts:
                    yield part

    def normalize(self, request: Request) -> Request:
        """Return a request that every server of this protocol takes."""
        return anthropic_wire.normalize(request)

    def translate_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters of OpenAI's chat completions in this protocol's words."""
        return anthropic_params.translate_params(params)

    def list_ignored_params(self, params: Mapping[str, Any]) -> list[str]:
        """Return the names of those that this protocol does not know."""
        return anthropic_params.list_ignored_params(params)


def _build_arguments(connection: Connection, request: Request, create: Any) -> dict[str, Any]:
    arguments = provider_client.to_sdk_arguments(
        create,
        select_fields(connection, provider_client.select_params(request)),
        connection.options.get("body", {}),
    )
    arguments |= {
        "model": request.model,
        "messages": anthropic_wire.build_messages(request),
        "max_tokens": request.max_tokens or request.params.get("max_tokens") or DEFAULT_MAX_TOKENS,
        "stream": True,
    }
    system = anthropic_wire.build_system(request)
    if system:
        arguments["system"] = system
    if request.tools:
        dialect = find_dialect(connection, request.model)
        arguments["tools"] = anthropic_wire.build_tools(
            request, has_simple_schemas=dialect.has_simple_schemas
        )
    return arguments
