"""Requests to addresses that people or models name: sent only where the address guard lets them, over connections of their own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from chatcore.net import address_guard
from chatcore.tools.base import ToolError

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 3.0
MAX_ADDRESSES = 3


@asynccontextmanager
async def open_response(
    url: "httpx2.URL",
    *,
    method: str = "GET",
    headers: Mapping[str, str],
    content: bytes | None = None,
    step_seconds: float,
) -> AsyncIterator["httpx2.Response"]:
    """One request to a checked address; its response, not read yet and not followed anywhere.

    `step_seconds` is the longest wait for any of its steps. Raises AddressRefused, ToolError when no address can be reached, and
    httpx2's own errors.
    """
    import httpx2

    addresses = await address_guard.resolve_addresses(url)
    transport = (
        httpx2.AsyncHTTPTransport()
    )  # given, so that no proxy of the environment resolves the name once more
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
    import httpx2

    request_headers = {**headers, "Host": url.netloc.decode("ascii")}
    extensions = {
        "sni_hostname": url.raw_host.decode("ascii")
    }  # the certificate must be the name's, not the address's
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
