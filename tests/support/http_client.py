"""One client of httpx for tests that send plain requests to a live server."""

import httpx

# Each client reads all certificates of the machine, which takes 50 ms. Connections are not kept:
# the next test may have another server at the same port.
http = httpx.Client(timeout=60, limits=httpx.Limits(max_keepalive_connections=0))
