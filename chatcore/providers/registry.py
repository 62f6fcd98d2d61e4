"""Language model providers by protocol; adding one is one file here and one line in PROTOCOLS."""

import importlib
from collections.abc import AsyncGenerator

from django.utils.module_loading import import_string

from chatcore.providers.base import Connection, ProviderClient, Request, StreamPart

PROTOCOLS = {
    "openai": "chatcore.providers.openai.OpenAIProvider",
    "anthropic": "chatcore.providers.anthropic.AnthropicProvider",
}


SDKS = ("openai", "anthropic")


def stream(connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
    """Stream one call through the provider of the connection's protocol."""
    provider: ProviderClient = import_string(PROTOCOLS[connection.protocol])()
    return provider.stream(connection, request)


def warm_up() -> None:
    """Load the SDKs before anybody waits for a first word: they take seconds, and only a process that answers needs them."""
    for sdk in SDKS:
        importlib.import_module(sdk)
