"""A TCP proxy before a server whose connections a test can break and restore.

It stands for a tunnel, a sleeping router or a pulled plug.
"""

import contextlib
import select
import socket
import threading
from typing import Self
from urllib.parse import urlsplit


class TcpProxy:
    """`with TcpProxy(server) as proxy`: `proxy.url` leads to the server while connected."""

    def __init__(self, server: str) -> None:
        address = urlsplit(server)
        self._server_address = (address.hostname, address.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._clients: set[socket.socket] = set()
        self._is_connected = threading.Event()
        self._is_connected.set()
        # Guards `_clients`, which each forwarding thread changes.
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def disconnect(self) -> None:
        """Break every connection. New ones break at once."""
        with self._lock:
            self._is_connected.clear()
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

    def reconnect(self) -> None:
        """Let new connections through again."""
        self._is_connected.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept_connections, name="tcp-proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the thread that waits in accept()
        self._listener.close()

    def _accept_connections(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(
                    target=self._forward, args=(client,), name="tcp-proxy-forward", daemon=True
                ).start()

    def _forward(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            with self._lock:  # a `disconnect` at this moment breaks this one, too
                if not self._is_connected.is_set():
                    return
                self._clients.add(client)
            try:
                with socket.create_connection(self._server_address) as server:
                    _copy_bytes(client, server)
            finally:
                with self._lock:
                    self._clients.remove(client)


def _copy_bytes(client: socket.socket, server: socket.socket) -> None:
    """Send what comes at one end from the other, until one is closed."""
    other_end = {client: server, server: client}
    while True:
        for end in select.select([client, server], [], [])[0]:
            data = end.recv(65536)
            if not data:
                return
            other_end[end].sendall(data)
