"""The certificates that servers on the internet are checked against."""

import functools
import ssl

import httpx2


@functools.cache
def get_ssl_context() -> ssl.SSLContext:
    """Return one context for all clients of this process: reading it takes 25 ms of CPU."""
    return httpx2.create_ssl_context()
