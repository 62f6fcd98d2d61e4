"""A client of the soak: one connection that is kept, and a note of each answer."""

import http.client
import json
import re
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

TIMEOUT_SECONDS = 60.0


class WrongAnswer(Exception):
    """An answer that the act did not order."""


@dataclass
class Notes:
    """What all clients of a kind were answered. Seconds are those of each request, in order."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    routes: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        with self.lock:
            self.seconds.append(seconds)
            self.statuses[status] += 1
            self.routes[method, path.split("?")[0]] += 1

    def note_fault(self, text: str) -> None:
        with self.lock:
            self.faults[text] += 1


@dataclass
class Answer:
    """The status, headers and body of an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __getitem__(self, name: str) -> Any:
        return json.loads(self.body)[name]

    def read(self) -> Any:
        """Return the value of a body of JSON."""
        return json.loads(self.body)


class Client:
    """One of the clients of the soak. Raises WrongAnswer for what `expect` does not name."""

    def __init__(self, url: str, token: str, notes: Notes, *, user: str, provider: str) -> None:
        self.address = urlsplit(url)
        self.token = token
        self.notes = notes
        self.user = user  # the name of its account
        self.provider = provider  # the address of the scripted provider
        self.name = uuid.uuid4().hex[:8]
        self.cookies: dict[str, str] = {}
        self._connection: http.client.HTTPConnection | None = None

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        expect: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and return its whole answer; a body that is no bytes is sent as JSON."""
        if query:
            path = f"{path}?{urlencode(query)}"
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent_headers = self._build_headers(body, headers)
        start = time.monotonic()
        try:
            answer = self._exchange(method, path, None if body is None else sent, sent_headers)
        except (OSError, http.client.HTTPException) as error:
            self._close()
            raise WrongAnswer(f"{method} {_shorten(path)}: {type(error).__name__}") from None
        self.notes.note(method, path, answer.status, time.monotonic() - start)
        is_right = answer.status in expect if expect else answer.status < 400
        if not is_right:
            text = answer.body[:200].decode(errors="replace")
            raise WrongAnswer(f"{method} {_shorten(path)}: {answer.status} {text}")
        return answer

    def become(self, token: str) -> "Client":
        """Return another client, with this token."""
        url = self.address.geturl()
        return Client(url, token, self.notes, user=self.user, provider=self.provider)

    def get(self, path: str, **options: Any) -> Answer:
        return self.send("GET", path, **options)

    def post(self, path: str, body: object = None, **options: Any) -> Answer:
        return self.send("POST", path, {} if body is None else body, **options)

    def patch(self, path: str, body: object, **options: Any) -> Answer:
        return self.send("PATCH", path, body, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.send("DELETE", path, **options)

    def upload(self, path: str, data: bytes, *, name: str = "notes.txt") -> Answer:
        """Send a file in a form."""
        edge = "soakedge"
        head = (
            f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: text/plain\r\n\r\n"
        )
        form = head.encode() + data + f"\r\n--{edge}--\r\n".encode()
        kind = f"multipart/form-data; boundary={edge}"
        return self.send("POST", path, form, headers={"Content-Type": kind})

    def send_and_leave(
        self,
        path: str,
        body: object,
        *,
        after: float = 0.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a request on a connection of its own, and close it after some seconds."""
        data = json.dumps(body).encode()
        lines = {"Content-Length": str(len(data)), **self._build_headers(body, headers)}
        head = f"POST {path} HTTP/1.1\r\nHost: {self.address.netloc}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
        start = time.monotonic()
        with socket.create_connection(self._target, TIMEOUT_SECONDS) as connection:
            connection.sendall(head.encode() + data)
            time.sleep(after)
        self.notes.note("POST", path, 0, time.monotonic() - start)

    @property
    def _target(self) -> tuple[str, int]:
        return str(self.address.hostname), int(self.address.port or 80)

    def _build_headers(self, body: object, headers: Mapping[str, str] | None) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if self.cookies:
            own["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body is not None:
            own["Content-Type"] = "application/json"
        return own | dict(headers or {})

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> Answer:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(*self._target, timeout=TIMEOUT_SECONDS)
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        data = response.read()
        for cookie in response.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        if response.will_close:
            self._close()
        return Answer(response.status, dict(response.headers), data)

    def _close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None


def _shorten(path: str) -> str:
    """Return a path without its numbers and ids, so that faults of one kind count together."""
    parts = path.split("?")[0].split("/")
    return "/".join("*" if re.search(r"\d", part) and len(part) > 3 else part for part in parts)
