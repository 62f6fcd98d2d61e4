"""A transport of HTTP clients that connects only where the address guard allows it."""

from collections.abc import AsyncIterator

import httpx2

from chatcore.base.net import address_guard, certificates
from chatcore.base.net.address_guard import NotReached

MAX_ADDRESSES = 3


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Checks the address of every request, redirects included, and connects to what was checked.

    A client with a transport of its own ignores the proxies of the environment. A proxy would
    resolve the name a second time, perhaps to an address that the guard has not checked.
    """

    def __init__(
        self, *, max_body_bytes: int | None = None, max_body_values: int | None = None
    ) -> None:
        self._transport = httpx2.AsyncHTTPTransport(verify=certificates.get_ssl_context())
        self._max_body_bytes = max_body_bytes
        self._max_body_values = max_body_values

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the first checked address that accepts a connection.

        Raises AddressRefused, NotReached when no address can be reached, and httpx2's own errors.
        """
        addresses = await address_guard.resolve_addresses(request.url)
        for address in addresses[:MAX_ADDRESSES]:
            try:
                response = await self._transport.handle_async_request(
                    _direct_request(request, address)
                )
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
            return self._limit_body(response)
        raise NotReached(f"{request.url.host} cannot be reached.")

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    def _limit_body(self, response: httpx2.Response) -> httpx2.Response:
        if self._max_body_bytes is not None:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _LimitedStream(
                response.stream, self._max_body_bytes, self._max_body_values
            )
        return response


class ValueCounter:
    """Counts the values of JSON that comes in pieces, before anybody makes objects of them.

    A megabyte of empty objects is a gigabyte of models.
    """

    def __init__(self) -> None:
        self._total = 0
        self._is_in_text = False
        self._rest = b""  # backslashes at the end of a piece: what follows belongs to them

    def count(self, piece: bytes) -> int:
        """Return how many values have come until the end of this piece."""
        text = self._rest + piece
        self._rest = text[len(text.rstrip(b"\\")) :]
        text = text[: len(text) - len(self._rest)]
        for part in text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"'):
            if not self._is_in_text:
                self._total += sum(part.count(sign) for sign in (b"{", b"[", b","))
            self._is_in_text = not self._is_in_text
        self._is_in_text = not self._is_in_text  # the last part has no end yet
        return self._total


class _LimitedStream(httpx2.AsyncByteStream):
    """A body that ends with an error when it grows too long, or has too many values of JSON."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, max_bytes: int, max_values: int | None
    ) -> None:
        self._stream = stream
        self._remaining_bytes = max_bytes
        self._max_values = max_values
        self._values = ValueCounter()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._remaining_bytes -= len(chunk)
            if self._remaining_bytes < 0:
                raise httpx2.ReadError("The answer is too long.")
            if self._max_values is not None and self._values.count(chunk) > self._max_values:
                raise NotReached("The server answered with too many values.")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _direct_request(request: httpx2.Request, address: str) -> httpx2.Request:
    """Return the request with a numeric address in place of the host's name.

    So nothing resolves the name again (DNS rebinding). The client has set the Host header to the
    name already, and the certificate still has to be that of the name.
    """
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
    )
