"""An HTTP server on loopback that answers without delay and ends at once."""

import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class LocalServer(ThreadingHTTPServer):
    """Serves in threads for as long as it is a context; `url` has no slash at its end."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, handler: Any) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._is_stopping = False
        self._thread = threading.Thread(target=self._serve, daemon=True, name="local-server")

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop, and close the port; do nothing if that was done."""
        # `shutdown` waits until a loop looks whether it is to end. This server waits only for
        # connections, so it is brought one.
        if not self._is_stopping:
            self._is_stopping = True
            with suppress(ConnectionRefusedError):  # it ended with a request of just now
                socket.create_connection(("127.0.0.1", self.server_port)).close()
            self._thread.join()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return not self._is_stopping

    def _serve(self) -> None:
        while not self._is_stopping:
            self.handle_request()
        self.server_close()


class LocalHandler(BaseHTTPRequestHandler):
    """A handler that prints nothing. Its answers do not wait between their head and their body."""

    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
