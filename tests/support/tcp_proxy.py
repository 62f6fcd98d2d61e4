"""A way over TCP from a browser to a server that a test can cut and mend, as a tunnel, a sleeping router or a pulled plug does."""

import contextlib
import select
import socket
import threading
from typing import Self
from urllib.parse import urlsplit


class TcpProxy:
    """`with CutLine(server) as line`: what is asked of `line.url` is asked of the server, as long as the line is whole."""

    def __init__(self, server: str) -> None:
        place = urlsplit(server)
        self._there = (place.hostname, place.port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._whole = threading.Event()
        self._whole.set()
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"

    def disconnect(self) -> None:
        """Break every connection; new ones break at once."""
        with self._lock:
            self._whole.clear()
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def reconnect(self) -> None:
        """From now on there is a line again."""
        self._whole.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._welcome, name="cut-line", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)  # wakes whoever waits at it
        self._door.close()

    def _welcome(self) -> None:
        with contextlib.suppress(OSError):  # the door was closed
            while True:
                near, _ = self._door.accept()
                threading.Thread(
                    target=self._carry, args=(near,), name="cut-line-carry", daemon=True
                ).start()

    def _carry(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            if not self._whole.is_set():
                return
            with socket.create_connection(self._there) as far:
                with self._lock:
                    self._open |= {near, far}
                self._copy(near, far)

    def _copy(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        try:
            while True:
                for end in select.select([near, far], [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    other[end].sendall(data)
        finally:
            with self._lock:
                self._open -= {near, far}
