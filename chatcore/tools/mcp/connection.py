"""Talk to an MCP server: list its tools, call one. Each time over a connection of its own.

Every request of it passes the address guard, and what a server answers is bounded in size and time.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings

from chatcore.base.extras import describe_missing, has_extra
from chatcore.base.net.address_guard import NotReached
from chatcore.base.net.outbound import CONNECT_SECONDS, build_user_agent
from chatcore.base.net.strangers import wait_for_stranger
from chatcore.models import McpServer
from chatcore.models.mcp_server import COMMAND_SCHEME
from chatcore.tools.base import ToolError
from models_registry.keys import UnreadableKey

if TYPE_CHECKING:
    import httpx2
    from mcp import Client, types

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_EVENT_BYTES = MAX_BODY_BYTES
MAX_BODY_VALUES = 100_000
MAX_PAGES = 20
MAX_LISTED_TOOLS = 1_000  # among which rules may choose
MAX_ERROR_CHARS = 500
T = TypeVar("T")


def list_tools(server: McpServer) -> "list[types.Tool]":
    """Return the tools that the server offers now. Raises ToolError with a sentence."""

    async def collect(client: "Client") -> "list[types.Tool]":
        tools: list[types.Tool] = []
        cursor = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor or len(tools) >= MAX_LISTED_TOOLS:
                break
        return tools[:MAX_LISTED_TOOLS]

    return _run(server, collect)


def call_tool(server: McpServer, name: str, arguments: dict[str, object]) -> str:
    """Call a tool and return its result as text. Raises ToolError, also where the tool failed."""

    async def call(client: "Client") -> str:
        result = await client.call_tool(name, arguments)
        text = render_result(result)
        if result.is_error:
            raise ToolError(text or "The tool failed without a word.")
        return text

    return _run(server, call)


class _Exchange:
    """What happened on the wire, to explain a failure: the status of the last answer."""

    def __init__(self) -> None:
        self.status = 0

    async def note_response(self, response: "httpx2.Response") -> None:
        self.status = response.status_code


def _run(server: McpServer, work: "Callable[[Client], Awaitable[T]]") -> T:
    """Run work over a new connection, and block until it is done."""
    if not has_extra("mcp"):
        raise ToolError(f"The server {server.name} cannot be used. {describe_missing('mcp')}")
    exchange = _Exchange()
    seconds = settings.CHATCORE["MCP_SECONDS"]

    async def run_in_time() -> T:
        async with asyncio.timeout(seconds), _connect(server, exchange) as client:
            return await work(client)

    try:
        return wait_for_stranger(run_in_time())
    except UnreadableKey as error:
        raise ToolError(f"The server {server.name} cannot be used: {error}") from None
    except Exception as error:  # noqa: BLE001 - the SDK wraps what happens in its tasks in groups
        raise ToolError(_explain(server, error, exchange)) from None


@asynccontextmanager
async def _connect(server: McpServer, exchange: _Exchange) -> "AsyncIterator[Client]":
    from mcp import Client
    from mcp.types import Implementation

    seconds = settings.CHATCORE["MCP_SECONDS"]
    user_agent = build_user_agent("mcp")
    async with _open_transport(server, exchange, user_agent) as transport:
        client = Client(
            transport,
            read_timeout_seconds=seconds,
            cache=None,
            client_info=Implementation(name="chatcore", version=user_agent.split("/")[1]),
        )
        async with client:
            yield client


@asynccontextmanager
async def _open_transport(
    server: McpServer, exchange: _Exchange, user_agent: str
) -> AsyncIterator[Any]:
    """Yield the SDK's transport: to an address, or to a command that the operator has named."""
    if server.url.startswith(COMMAND_SCHEME):
        yield _build_command_transport(server)
        return
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from chatcore.base.net.guarded_transport import GuardedTransport

    seconds = settings.CHATCORE["MCP_SECONDS"]
    headers = {
        "User-Agent": user_agent,
        # A small answer that is compressed may expand to gigabytes.
        "Accept-Encoding": "identity",
        **server.reveal_headers(),
    }
    async with httpx2.AsyncClient(
        transport=GuardedTransport(max_body_bytes=MAX_BODY_BYTES, max_body_values=MAX_BODY_VALUES),
        headers=headers,
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
        event_hooks={"response": [exchange.note_response, _refuse_compression]},
        trust_env=False,
    ) as http_client:
        yield streamable_http_client(
            server.reveal_url(), http_client=http_client, max_sse_event_size=MAX_EVENT_BYTES
        )


def _build_command_transport(server: McpServer) -> object:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = settings.CHATCORE["MCP_COMMANDS"].get(server.url.removeprefix(COMMAND_SCHEME))
    if words is None:
        raise ToolError("CHATCORE_MCP_COMMANDS no longer names its command.")
    # The SDK hands on only harmless variables of the environment, so no key of this process.
    return stdio_client(StdioServerParameters(command=words[0], args=words[1:]))


async def _refuse_compression(response: "httpx2.Response") -> None:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ToolError("The server sent a compressed answer although it was asked not to.")


def _explain(server: McpServer, error: BaseException, exchange: _Exchange) -> str:
    """Return why the server could not be used, in a sentence without any secret."""
    from mcp import MCPError

    errors = list(_flatten(error))
    for cause in errors:
        if isinstance(cause, ToolError | NotReached):
            return str(cause)
    if any(isinstance(cause, TimeoutError) for cause in errors):
        seconds = settings.CHATCORE["MCP_SECONDS"]
        return f"The server {server.name} did not answer within {seconds} seconds."
    if exchange.status >= 300:
        return f"The server {server.name} answered with the status {exchange.status}."
    for cause in errors:
        if isinstance(cause, MCPError):
            return f"The server {server.name} answered: {str(cause)[:MAX_ERROR_CHARS]}"
    log.warning("the MCP server %s failed", server.pk, exc_info=error)
    return f"The server {server.name} broke off, or does not speak the protocol."


def _flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _flatten(part)
    else:
        yield error


def render_result(result: "types.CallToolResult") -> str:
    """Return the texts of the result in order; what is no text is named.

    A result with structured content alone is JSON.
    """
    texts = [_render_block(block) for block in result.content]
    if not texts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n\n".join(texts)


def _render_block(block: "types.ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "resource_link":
            return f"[{block.name}]({block.uri})"
        case "resource":
            text: str | None = getattr(block.resource, "text", None)
            return text if text is not None else f"[a file that is no text: {block.resource.uri}]"
    return f"[content of the type {block.mime_type}, which is not shown]"
