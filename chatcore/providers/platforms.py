"""Other clients of the SDKs: Amazon Bedrock, Google Vertex AI and Azure.

The option `client` of a provider's row chooses one: `bedrock` or `vertex` in Anthropic's protocol,
`azure` in OpenAI's. The provider's key is Bedrock's API key, Vertex's access token or Azure's key.
Without one, Bedrock and Vertex use the credentials of the machine.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from chatcore.providers.base import Connection
from chatcore.providers.errors import ProviderRejected, ProviderUnavailable

OWN_CREDENTIALS = ("bedrock", "vertex")

_Options = dict[str, Any]


def build_client(
    sdk: Any,
    connection: Connection,
    options: _Options,
    *,
    usual: str,
    others: Mapping[str, Callable[[Any, Connection, _Options], Any]],
) -> Any:
    """Return the SDK's client that the provider's row chooses, or its usual one.

    It is kept with its HTTP client, because a new one asks in a thread on which platform it is, and
    that takes 3 ms of each call. Raises ProviderRejected for a choice that the protocol has not.
    """
    kept_clients = options["http_client"].sdk_clients
    key = repr((usual, connection.options, connection.max_retries, connection.timeout_seconds))
    if key not in kept_clients:
        kept_clients.clear()
        kept_clients[key] = _build_client(sdk, connection, options, usual=usual, others=others)
    return kept_clients[key]


def _build_client(
    sdk: Any,
    connection: Connection,
    options: _Options,
    *,
    usual: str,
    others: Mapping[str, Callable[[Any, Connection, _Options], Any]],
) -> Any:
    choice = connection.options.get("client")
    if not choice:
        return getattr(sdk, usual)(**options)
    if choice not in others:
        raise ProviderRejected(
            f"This protocol has no client {choice!r}; there are {', '.join(others)}."
        )
    return others[choice](sdk, connection, options)


def build_bedrock_client(sdk: Any, connection: Connection, options: _Options) -> Any:
    """Return Anthropic's client of Amazon Bedrock, in the option `region`.

    It needs botocore to read an answer.
    """
    _require_package("botocore", "bedrock")
    return sdk.AsyncAnthropicBedrock(
        **options | {"api_key": connection.api_key.strip() or None},
        aws_region=connection.options.get("region"),
    )


def build_vertex_client(sdk: Any, connection: Connection, options: _Options) -> Any:
    """Return Anthropic's client of Vertex AI, in the options `region` and `project`.

    It needs google-auth unless the provider has an access token.
    """
    token = connection.api_key.strip() or None
    if token is None:
        _require_package("google", "vertex")
    del options["api_key"]
    return sdk.AsyncAnthropicVertex(
        **options,
        access_token=token,
        region=connection.options.get("region") or "global",
        project_id=connection.options.get("project") or sdk.NOT_GIVEN,
    )


def build_azure_client(sdk: Any, connection: Connection, options: _Options) -> Any:
    """Return OpenAI's client of Azure, of the version in the option `api_version`.

    The provider's address is the endpoint, and the names of its models are its deployments.
    """
    return sdk.AsyncAzureOpenAI(
        **options | {"base_url": None},
        azure_endpoint=connection.base_url,
        api_version=connection.options.get("api_version"),
    )


def _require_package(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise ProviderUnavailable(
            f"This provider needs a package that is not installed: pip install 'anthropic[{extra}]'"
        )
