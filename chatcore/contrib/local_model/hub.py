"""Download a file from the model hub over HTTPS, and resume an interrupted download."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import httpx2

CONNECT_SECONDS = 5
READ_SECONDS = 30


class HubUnavailable(Exception):
    """The hub did not send the file. The message says why."""


def download_file(url: str, partial: Path, *, report: Callable[[int], None]) -> None:
    """Download `url` into the file `partial`; call `report` with the number of bytes so far.

    If the connection breaks, the bytes that came stay in `partial`, and the next call goes on after
    them. Raises HubUnavailable.
    """
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
        return  # the file is complete already; its checksum is compared next
    response.raise_for_status()
    # A server may ignore the range and send the whole file; then the old bytes must go.
    mode = "ab" if response.status_code == HTTPStatus.PARTIAL_CONTENT else "wb"
    with partial.open(mode) as file:
        for block in response.iter_bytes():
            file.write(block)
            report(file.tell())
