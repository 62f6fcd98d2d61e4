"""Send HTTP requests to addresses that people or models name, where the address guard allows it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from chatcore.net import address_guard
from chatcore.tools.base import ToolError

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 3.0
MAX_ADDRESSES = 3


def build_user_agent(purpose: str) -> str:
    """Return the User-Agent header: this program, its version, and what the request is for."""
    return f"Chatcore/{version('chatcore')} ({purpose})"


@asynccontextmanager
async def open_response(
    url: "httpx2.URL",
    *,
    method: str = "GET",
    headers: Mapping[str, str],
    content: bytes | None = None,
    step_seconds: float,
) -> AsyncIterator["httpx2.Response"]:
    """Send one request to a checked address; yield the response with its body still unread.

    Redirects are not followed. `step_seconds` is the longest wait for any single step. Raises
    AddressRefused, ToolError when no address can be reached, and httpx2's own errors.
    """
    import httpx2

    addresses = await address_guard.resolve_addresses(url)
    # With a transport of its own the client ignores proxies of the environment. A proxy would
    # resolve the name a second time, perhaps to an address that the guard has not checked.
    transport = httpx2.AsyncHTTPTransport()
    limits = httpx2.Timeout(step_seconds, connect=CONNECT_SECONDS)
    async with httpx2.AsyncClient(transport=transport, timeout=limits, trust_env=False) as client:
        response = await _send_request(
            client, method, url, addresses[:MAX_ADDRESSES], headers, content
        )
        try:
            yield response
        finally:
            await response.aclose()


async def _send_request(
    client: "httpx2.AsyncClient",
    method: str,
    url: "httpx2.URL",
    addresses: list[str],
    headers: Mapping[str, str],
    content: bytes | None,
) -> "httpx2.Response":
    """Send the request to the first of these addresses that accepts a connection."""
    import httpx2

    # The connection goes to the checked number, so nothing resolves the name again (DNS
    # rebinding). Host header and certificate still have to be those of the name.
    request_headers = {**headers, "Host": url.netloc.decode("ascii")}
    extensions = {"sni_hostname": url.raw_host.decode("ascii")}
    for address in addresses:
        request = client.build_request(
            method,
            url.copy_with(host=address),
            headers=request_headers,
            content=content,
            extensions=extensions,
        )
        try:
            return await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            continue
    raise ToolError(f"{url.host} cannot be reached.")
