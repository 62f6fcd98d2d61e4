"""Ask a provider for its list of models, and look for servers on this machine."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chatcore.base.net.strangers import wait_for_stranger
from chatcore.providers import client as provider_client
from chatcore.providers.base import Connection
from chatcore.providers.errors import ProviderError
from chatcore.providers.protocols import load_protocol
from chatcore.providers.registry import build_connection
from models_registry.models import Provider

logger = logging.getLogger(__name__)

LIST_SECONDS = 20.0
LOCAL_SECONDS = 1.5  # a server on this machine answers at once, or it is none


@dataclass(frozen=True, kw_only=True)
class LocalServer:
    """A program that many people run models with, and the port on which it listens.

    `tells_reading` if it tells how far it has read a request (`openai.py`).
    """

    name: str
    title: str
    port: int
    tells_reading: bool = False

    @property
    def base_url(self) -> str:
        """Return where it takes requests in OpenAI's protocol."""
        return f"http://127.0.0.1:{self.port}/v1"


LOCAL_SERVERS = (
    LocalServer(name="ollama", title="Ollama", port=11434),
    LocalServer(name="lm-studio", title="LM Studio", port=1234),
    LocalServer(name="llama-cpp", title="llama.cpp", port=8080, tells_reading=True),
)


@dataclass(frozen=True, kw_only=True)
class ModelList:
    """The rows of a provider's list of models; `problem` says why there are none, if it failed."""

    rows: Sequence[object] = ()
    problem: str = ""


def read_list(provider: Provider, *, loaded_name: str = "") -> ModelList:
    """Ask a provider for its list of models, for at most LIST_SECONDS.

    A server that loads models when they are asked for loads `loaded_name`.
    """
    try:
        connection = build_connection(provider, max_retries=0)
        rows = wait_for_stranger(fetch_models(connection, loaded_name=loaded_name))
        return ModelList(rows=rows)
    except ProviderError as error:
        problem = error.detail
    except TimeoutError:
        problem = f"There was no answer within {LIST_SECONDS:g} seconds."
    logger.info("the models of %s are not listed: %s", provider, problem)
    return ModelList(problem=problem)


def find_local_servers() -> dict[LocalServer, list[object]]:
    """Return the servers on this machine that list models, with the rows of their lists."""
    row_lists = wait_for_stranger(_ask_local_servers())
    return {server: rows for server, rows in zip(LOCAL_SERVERS, row_lists, strict=True) if rows}


async def _ask_local_servers() -> list[list[object]]:
    # Its first import in a process takes longer than a server may take to answer.
    await provider_client.load_sdk(load_protocol(Provider.Protocol.OPENAI).sdk_name)
    return await asyncio.gather(*map(_ask_local_server, LOCAL_SERVERS))


async def _ask_local_server(server: LocalServer) -> list[object]:
    provider = Provider(
        name=server.name, protocol=Provider.Protocol.OPENAI, base_url=server.base_url
    )
    connection = replace(build_connection(provider, max_retries=0), timeout_seconds=LOCAL_SECONDS)
    try:
        async with asyncio.timeout(LOCAL_SECONDS):
            return await fetch_models(connection)
    except (ProviderError, TimeoutError):
        return []


async def fetch_models(connection: Connection, *, loaded_name: str = "") -> list[object]:
    """Return the rows of the provider's list. Raises ProviderErrors and TimeoutError.

    A platform of a cloud (the option `client`) has no such list.
    """
    if connection.options.get("client"):
        return []
    async with asyncio.timeout(LIST_SECONDS):
        protocol = load_protocol(connection.protocol)
        return await protocol.fetch_models(connection, loaded_name=loaded_name)
