"""Build a connection from a registry row: the only place where an API key is decrypted."""

import functools
from typing import Any

from chatcore.providers.base import Connection
from chatcore.providers.errors import ProviderAuth
from chatcore.threads import run_in_thread
from models_registry.keys import UnreadableKey
from models_registry.models import AiModel, Provider


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


async def _keep_facts(provider: Provider, model: str, facts: dict[str, Any]) -> None:
    await run_in_thread(provider.keep_learned, model, facts)


def choose_effort(model: AiModel) -> str:
    """Return how much a model is to reason before it writes about a talk; empty: nothing is said.

    It is little for models that are known to take a word for it. A provider's option
    `summary_effort` names it for all of its models, for example `low`; none is sent where that is
    empty.
    """
    effort: str = model.provider.options.get("summary_effort", model.reasoning.effort)
    return effort
