"""Requests over a bare socket: half of them, or what no client library would send."""

import socket
from urllib.parse import urlsplit


class RawConnection:
    """One connection to a server at `url`; `with RawConnection(url) as connection`."""

    def __init__(self, url: str, timeout: float = 20) -> None:
        address = urlsplit(url)
        assert address.hostname
        assert address.port
        self._socket = socket.create_connection((address.hostname, address.port), timeout)

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_head(self, method: str, path: str, **headers: str | int) -> None:
        """Send the first lines of a request, and nothing of its body."""
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def receive_response(self) -> tuple[int, str]:
        """Return the status and the whole text of a response that has a Content-Length."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, _, body = received.partition(b"\r\n\r\n")
        headers = dict(
            line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if line
        )
        while len(body) < int(headers.get("content-length", 0)):
            body += self._receive()
        return int(head.split()[1]), (head + b"\r\n\r\n" + body).decode()

    def is_closed(self) -> bool:
        """Wait until the server closes the connection; return False if it does not in time."""
        try:
            while self._socket.recv(65_536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def _receive(self) -> bytes:
        data = self._socket.recv(65_536)
        assert data, "the connection was closed before the response was complete"
        return data
