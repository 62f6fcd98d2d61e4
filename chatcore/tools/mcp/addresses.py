"""Which addresses and headers a server may be given; the guard looks at addresses again later."""

import re

import httpx2

MAX_HEADERS = 20
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
HEADER_VALUE = re.compile(r"[\x20-\x7e]{1,8000}")
RESERVED_HEADERS = {"host", "connection", "content-length", "content-type", "transfer-encoding"}


def check_address(text: str) -> str:
    """Return an http or https address as it is. Raises ValueError for any other."""
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, UnicodeError):
        url = httpx2.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ValueError("An http or https address without credentials.")
    return text


def check_headers(headers: dict[str, str]) -> dict[str, str]:
    """Return headers that may be sent. Raises ValueError."""
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"At most {MAX_HEADERS} headers.")
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name) or name.lower() in RESERVED_HEADERS:
            raise ValueError(f"{name[:100]!r} cannot be the name of a header here.")
        if not HEADER_VALUE.fullmatch(value):
            raise ValueError(f"The value of {name} is empty, too long or not plain ASCII.")
    return headers
