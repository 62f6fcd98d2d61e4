"""From a registry row to what a provider needs; the only place where an API key is read in clear."""

from chatcore.providers.base import Connection
from chatcore.providers.errors import ProviderAuth
from models_registry.keys import UnreadableKey
from models_registry.models import Provider


def build_connection(
    provider: Provider, *, max_retries: int = 2, for_summary: bool = False
) -> Connection:
    """How to reach a provider. `max_retries` are the SDK's own. Raises ProviderAuth when the stored key cannot be decrypted.

    A provider's option `body` holds fields for every request, `summary_body` more of them for summaries.
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
