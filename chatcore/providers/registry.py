"""The providers by protocol, and how to reach one: the only place where an API key is decrypted.

A new protocol is a file here with a class like `OpenAIProvider`, and its name in
`models_registry.models.Provider.Protocol`; options that are its own stand in
`models_registry/provider_options.py` (docs/providers.md, "A new protocol").
"""

import functools
import importlib
from collections.abc import AsyncGenerator, Iterable, Mapping

from chatcore.base.threads import run_in_thread
from chatcore.base.tracing import get_traces
from chatcore.providers import adaptation
from chatcore.providers.adaptation import stream_adapted
from chatcore.providers.base import (
    Connection,
    Request,
    StreamPart,
)
from chatcore.providers.errors import ProviderAuth
from chatcore.providers.protocols import load_protocol
from models_registry.keys import UnreadableKey
from models_registry.models import AiModel, Provider


def stream(connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
    """Stream one call through the provider of the connection's protocol."""
    parts = stream_adapted(load_protocol(connection.protocol).stream, connection, request)
    return get_traces().trace_call(connection, request, parts)


def warm_up(protocols: Iterable[str]) -> None:
    """Import the SDKs of some protocols, so that the first answer does not wait for it.

    Each takes two seconds of a processor and 30 MB, and only a process that calls models needs it.
    """
    for protocol in protocols:
        importlib.import_module(load_protocol(protocol).sdk_name)


def build_connection(
    provider: Provider, *, max_retries: int = 2, for_summary: bool = False
) -> Connection:
    """Return how to reach a provider. Raises ProviderAuth if the stored key cannot be decrypted.

    `max_retries` is for the SDK. The provider's option `body` has fields for every request,
    `summary_body` further ones for summaries.
    """
    try:
        key = provider.reveal_api_key()
    except UnreadableKey as error:
        raise ProviderAuth(str(error)) from None
    body = dict(provider.options.get("body", {}))
    if for_summary:
        body |= provider.options.get("summary_body", {})
    return Connection(
        protocol=provider.protocol,
        base_url=provider.base_url,
        api_key=key,
        options={**provider.options, "body": body},
        timeout_seconds=provider.timeout_seconds,
        max_retries=max_retries,
        learned=provider.list_learned(),
        keep_facts=functools.partial(_keep_facts, provider),
    )


async def _keep_facts(provider: Provider, model: str, facts: dict[str, object]) -> None:
    await run_in_thread(provider.keep_learned, model, facts)


def list_refused_params(model: AiModel, params: Mapping[str, object]) -> list[str]:
    """Return the names of parameters that the provider is known to refuse for a model."""
    facts = model.provider.list_learned().get(model.name, {})
    return adaptation.list_refused_params({**facts, **model.provider.options}, params)


def choose_effort(model: AiModel) -> str:
    """Return how much a model is to reason before it writes about a talk; empty: nothing is said.

    It is little for models that are known to take a word for it. A provider's option
    `summary_effort` names it for all of its models, for example `low`; none is sent where that is
    empty.
    """
    effort: str = model.provider.options.get("summary_effort", model.reasoning.effort)
    return effort
