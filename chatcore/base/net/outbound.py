"""Send HTTP requests to addresses that people or models name, where the address guard allows it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 3.0


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
    AddressRefused, NotReached when no address can be reached, and httpx2's own errors.
    """
    import httpx2

    from chatcore.base.net.guarded_transport import GuardedTransport

    limits = httpx2.Timeout(step_seconds, connect=CONNECT_SECONDS)
    async with httpx2.AsyncClient(
        transport=GuardedTransport(), timeout=limits, trust_env=False
    ) as client:
        request = client.build_request(method, url, headers=headers, content=content)
        response = await client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()
