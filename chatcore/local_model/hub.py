"""One file from the model hub over HTTPS, going on where an earlier download stopped."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import httpx2

CONNECT_SECONDS, READ_SECONDS = 5, 30


class HubUnavailable(Exception):
    """The hub did not give the file; the message says how."""


def download_file(url: str, partial: Path, *, report: Callable[[int], None]) -> None:
    """Fetch `url` into `partial`, whose bytes are kept when the connection breaks; `report` gets the bytes so far."""
    partial_bytes = partial.stat().st_size if partial.exists() else 0
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    headers = {"Range": f"bytes={partial_bytes}-"} if partial_bytes else {}
    try:
        with httpx2.stream(
            "GET", url, headers=headers, timeout=timeout, follow_redirects=True
        ) as response:
            _receive_file(response, partial, report)
    except (httpx2.HTTPError, OSError) as error:
        raise HubUnavailable(str(error) or type(error).__name__) from error


def _receive_file(response: httpx2.Response, partial: Path, report: Callable[[int], None]) -> None:
    if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return  # nothing is missing; the checksum decides
    response.raise_for_status()
    with partial.open("ab" if response.status_code == HTTPStatus.PARTIAL_CONTENT else "wb") as file:
        for block in response.iter_bytes():
            file.write(block)
            report(file.tell())
