"""Language model providers by protocol; adding one is one file here and one line in PROTOCOLS."""

import importlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from django.utils.module_loading import import_string

from chatcore.providers.base import Connection, ProviderClient, Request, StreamPart

PROTOCOLS = {
    "openai": "chatcore.providers.openai.OpenAIProvider",
    "anthropic": "chatcore.providers.anthropic.AnthropicProvider",
}


SDKS = ("openai", "anthropic")


def stream(connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
    """Stream one call through the provider of the connection's protocol."""
    return _load_provider(connection.protocol).stream(connection, request)


def translate_params(protocol: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of OpenAI's chat completions in a protocol's words. Raises InvalidParam."""
    return _load_provider(protocol).translate_params(params)


def warm_up() -> None:
    """Load the SDKs before anybody waits for a first word: they take seconds, and only a process that answers needs them."""
    for sdk in SDKS:
        importlib.import_module(sdk)


def _load_provider(protocol: str) -> ProviderClient:
    provider: ProviderClient = import_string(PROTOCOLS[protocol])()
    return provider
