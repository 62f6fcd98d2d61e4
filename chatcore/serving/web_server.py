"""Run one web process: `web_server SOCKET READY`, both numbers of file descriptors.

The parent has bound the socket, and several processes may share it: whoever is free takes the next
connection. READY is a pipe to which the process writes when it serves.
"""

import gc
import os
import socket
import sys
from typing import Any

# Python's own, 700 new objects, has half a second spent on what is being imported, and stops all
# answers for 40 ms and more to look through the objects of a hundred of them.
GC_THRESHOLDS = (20_000, 20, 20)
GRACE_SECONDS = 5  # for open requests when the server stops
WEBSOCKET_MESSAGE_BYTES = 8 * 1024 * 1024


def main() -> None:
    """Serve until TERM."""
    import django

    gc.set_threshold(*GC_THRESHOLDS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
    django.setup()
    serve_socket(socket.socket(fileno=int(sys.argv[1])), ready=int(sys.argv[2]))


def serve_socket(server_socket: socket.socket, *, ready: int | None = None) -> None:
    """Serve the application at this socket until TERM, with Django set up."""
    # Imported here: `serve` takes GRACE_SECONDS from this module and runs no server itself.
    import uvicorn
    from django.conf import settings

    from chatcore.base.environment import read_list
    from chatcore.serving.draining import DrainingServer
    from chatcore.serving.heap import limit_heap

    limit_heap()
    config = uvicorn.Config(
        "chatcore.asgi:application",
        **build_protocols(),
        loop="auto",  # uvloop, with the extra fast
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        # X-Forwarded-For and X-Forwarded-Proto are believed from these, and from nobody else.
        # Without a public address there is no proxy, and whoever is on this machine could name any
        # address and guess passwords from each of them.
        proxy_headers=True,
        forwarded_allow_ips=read_list(
            "CHATCORE_TRUSTED_PROXIES", ["127.0.0.1", "::1"] if settings.PUBLIC_URL else []
        ),
    )
    server = DrainingServer(config, drain_seconds=settings.DRAIN_SECONDS, ready=ready)
    server.run(sockets=[server_socket])


def build_protocols() -> dict[str, Any]:
    """Return the options of uvicorn that bound what a client may send, and how slowly."""
    from chatcore.serving.http_protocol import PatientHttpProtocol
    from chatcore.serving.websocket_protocol import GuardedWebSocketProtocol

    return {
        "http": PatientHttpProtocol,
        "ws": GuardedWebSocketProtocol,
        # Compressed, a message of 15 MB is 15 KB on the wire.
        "ws_per_message_deflate": False,
        "ws_max_size": WEBSOCKET_MESSAGE_BYTES,
    }


if __name__ == "__main__":
    main()
