"""The providers by protocol.

A new protocol is a file here with a class like `OpenAIProvider`, one line in PROTOCOLS, and its
name in `models_registry.models.Provider.Protocol` (with a migration). If its SDK or its error
texts are of a new kind, `error_mapping.py` and `overflow.py` recognize them by patterns.
"""

import importlib
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from django.utils.module_loading import import_string

from chatcore.providers.adaptation import stream_adapted
from chatcore.providers.base import Connection, ProviderClient, Request, StreamPart
from chatcore.traces import spans
from chatcore.traces.calls import trace_call

PROTOCOLS = {
    "openai": "chatcore.providers.openai.OpenAIProvider",
    "anthropic": "chatcore.providers.anthropic.AnthropicProvider",
}


def stream(connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
    """Stream one call through the provider of the connection's protocol."""
    parts = stream_adapted(_load_provider(connection.protocol).stream, connection, request)
    return trace_call(connection, request, parts) if spans.are_on() else parts


def normalize(protocol: str, request: Request) -> Request:
    """Return a request as a protocol sends it: what no server refuses."""
    return _load_provider(protocol).normalize(request)


def translate_params(protocol: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of OpenAI's chat completions in a protocol's words. Raises InvalidParam."""
    return _load_provider(protocol).translate_params(params)


def list_ignored_params(protocol: str, params: Mapping[str, Any]) -> list[str]:
    """Return the names of parameters of OpenAI's chat completions that a protocol leaves out."""
    return _load_provider(protocol).list_ignored_params(params)


def warm_up(protocols: Iterable[str]) -> None:
    """Import the SDKs of some protocols, so that the first answer does not wait for it.

    Each takes two seconds of a processor and 30 MB, and only a process that calls models needs it.
    """
    for protocol in protocols:
        importlib.import_module(_load_provider(protocol).sdk_name)


def _load_provider(protocol: str) -> ProviderClient:
    provider: ProviderClient = import_string(PROTOCOLS[protocol])()
    return provider
