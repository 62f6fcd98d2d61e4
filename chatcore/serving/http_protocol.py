"""The HTTP protocol of the web server: uvicorn's, which also closes half-sent requests."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class PatientHttpProtocol(HttpToolsProtocol):
    """One connection. uvicorn waits for ever for the rest of a request; this waits for a time.

    A request's head must arrive within HEAD_SECONDS. Its body must go on: in each BODY_SECONDS at
    least BODY_BYTES of it. What a client still sends after it was refused is thrown away for
    REFUSED_SECONDS, because a connection that is closed at once would take the refusal with it.
    """

    HEAD_SECONDS = 30.0
    BODY_SECONDS = 30.0
    BODY_BYTES = 16 * 1024
    REFUSED_SECONDS = 5.0
    # False once this process leaves: the next request of each client is for another process.
    keeps_connections = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_body_pending = False
        self._bytes_since_start = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._start_deadline(self.HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the head of a request, the first one or a further one."""
        super().on_message_begin()
        self._start_deadline(self.HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        """Wait for the body of the request."""
        self._is_body_pending = True
        self._start_deadline(self.BODY_SECONDS)
        super().on_headers_complete()
        if self.cycle is not None and not self.keeps_connections:
            self.cycle.keep_alive = False

    @property
    def may_send_more(self) -> bool:
        """Return True while no request is being answered: the next one may be on its way."""
        return self.cycle is None or self.cycle.response_complete

    def give_up_connection(self) -> None:
        """Close the connection after the response that is being made, if there is one."""
        if self.cycle is not None and not self.may_send_more:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Wait longer if enough of the body has come."""
        super().on_body(body)
        self._bytes_since_start += len(body)
        is_refused = self.cycle is not None and self.cycle.response_complete
        if self._bytes_since_start >= self.BODY_BYTES and not is_refused:
            self._start_deadline(self.BODY_SECONDS)

    def on_message_complete(self) -> None:
        """Wait for nothing: it is our turn to answer."""
        self._is_body_pending = False
        self._cancel_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait a little for the rest of a request that was answered before its end."""
        if self._is_body_pending:
            self._start_deadline(self.REFUSED_SECONDS)
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the other protocol."""
        self._cancel_deadline()
        super().handle_websocket_upgrade()

    def _start_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self._bytes_since_start = 0
        self._deadline = self.loop.call_later(seconds, self._close_late_request, seconds)

    def _cancel_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _close_late_request(self, seconds: float) -> None:
        # A client cannot go on while we do not read: its bytes wait for an earlier request.
        if self.flow.read_paused:
            self._start_deadline(seconds)
        elif not self.transport.is_closing():
            self.transport.close()
