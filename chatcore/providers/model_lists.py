"""Ask a provider for its list of models, and learn what it says of those in the registry."""

import asyncio
import importlib
import logging
from typing import Any

from django.utils import timezone

from chatcore.net.strangers import wait_for_stranger
from chatcore.providers import client as provider_client
from chatcore.providers.base import Connection
from chatcore.providers.connections import build_connection
from chatcore.providers.error_mapping import translate_errors
from chatcore.providers.errors import ProviderError
from models_registry import provider_lists
from models_registry.models import Provider

logger = logging.getLogger(__name__)

LIST_SECONDS = 20.0
# By protocol: the SDK, its client, and where the list is behind the address.
SDKS = {
    Provider.Protocol.OPENAI: ("openai", "AsyncOpenAI", "/models"),
    Provider.Protocol.ANTHROPIC: ("anthropic", "AsyncAnthropic", "/v1/models?limit=1000"),
}


def learn_from_list(provider: Provider) -> int:
    """Fill in what nobody knows of a provider's models; return how many models changed.

    A list is a help and no need: where a provider has none, nothing is learned.
    """
    try:
        connection = build_connection(provider, max_retries=0)
        rows = wait_for_stranger(fetch_models(connection))
    except (ProviderError, TimeoutError) as error:
        logger.info("the models of %s are not listed: %s", provider, error)
        return 0
    return provider_lists.fill_unknown_values(provider, rows, date=timezone.now().date())


async def fetch_models(connection: Connection) -> list[Any]:
    """Return the rows of the provider's list. Raises ProviderErrors and TimeoutError.

    A platform of a cloud (the option `client`) has no such list.
    """
    if connection.options.get("client"):
        return []
    sdk_name, client_name, path = SDKS[Provider.Protocol(connection.protocol)]
    await provider_client.load_sdk(sdk_name)
    sdk = importlib.import_module(sdk_name)
    with translate_errors(sdk, connection):
        options = await provider_client.build_client_options(sdk, connection)
        client = getattr(sdk, client_name)(**options)
        async with asyncio.timeout(LIST_SECONDS):
            answer = await client.get(path, cast_to=object)
    rows = answer.get("data") if isinstance(answer, dict) else None
    return rows if isinstance(rows, list) else []
