"""Download a file from an address that the operator names, where the address guard allows it."""

import asyncio
from typing import TYPE_CHECKING

from chatcore.base.net import outbound
from chatcore.base.net.address_guard import NotReached

if TYPE_CHECKING:
    import httpx2


class DownloadFailed(Exception):
    """The file could not be had; the text says why, in a sentence."""


async def download(address: str, *, max_bytes: int, seconds: float) -> bytes:
    """Return the file at an address. Redirects are not followed. Raises DownloadFailed."""
    import httpx2

    try:
        async with asyncio.timeout(seconds):
            return await _read_content(httpx2.URL(address), max_bytes, seconds)
    except TimeoutError:
        raise DownloadFailed(f"No answer came within {seconds:.0f} seconds.") from None
    except (httpx2.InvalidURL, UnicodeError):
        raise DownloadFailed("Its address is not valid.") from None
    except httpx2.HTTPError as error:
        raise DownloadFailed(f"The connection failed ({type(error).__name__}).") from None
    except NotReached as error:
        raise DownloadFailed(str(error)) from None


async def _read_content(url: "httpx2.URL", max_bytes: int, seconds: float) -> bytes:
    # Compressed answers are refused, because a small one may expand to gigabytes.
    headers = {
        "User-Agent": outbound.build_user_agent("downloads"),
        "Accept-Encoding": "identity",
    }
    content = bytearray()
    async with outbound.open_response(url, headers=headers, step_seconds=seconds) as response:
        if response.status_code != 200:
            raise DownloadFailed(f"It answered {response.status_code}.")
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > max_bytes:
                raise DownloadFailed(f"It is larger than {max_bytes // 1_000_000} MB.")
    return bytes(content)
