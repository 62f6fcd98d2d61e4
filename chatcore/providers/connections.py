"""Build a connection from a registry row: the only place where an API key is decrypted."""

from chatcore.providers.base import Connection
from chatcore.providers.errors import ProviderAuth
from models_registry.keys import UnreadableKey
from models_registry.models import Provider


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
    )
