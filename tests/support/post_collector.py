"""A server on loopback that keeps the body of each POST, unpacked."""

import gzip

from tests.support.local_server import LocalHandler, LocalServer


class PostCollector(LocalServer):
    """Takes whatever is posted."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.bodies: list[bytes] = []


class _Handler(LocalHandler):
    server: PostCollector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_packed = self.headers.get("Content-Encoding") == "gzip"
        self.server.bodies.append(gzip.decompress(body) if is_packed else body)
        self.send_response(200)
        self.end_headers()
