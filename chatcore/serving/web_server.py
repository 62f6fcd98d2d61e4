"""Run one web process: `web_server HOST PORT HEALTH_PORT`. Several of them may share one port.

Each also listens at a port of its own on this machine, where the supervisor asks whether it lives:
at the shared port, any of them could answer for one that hangs.
"""

import os
import socket
import sys

from chatcore.local_model.server import LOOPBACK

GRACE_SECONDS = 5  # for open requests when the server stops
WEBSOCKET_MESSAGE_BYTES = 8 * 1024 * 1024


def main() -> None:
    """Listen at both ports and serve until TERM."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
    django.setup()
    host, port, health_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    serve_sockets([open_socket(host, port, is_shared=True), open_socket(LOOPBACK, health_port)])


def serve_sockets(sockets: list[socket.socket]) -> None:
    """Serve the application at these sockets until TERM, with Django set up."""
    # Imported here: `serve` takes GRACE_SECONDS from this module and runs no server itself.
    import uvicorn
    from django.conf import settings

    from chatcore.environment import read_list
    from chatcore.serving.draining import DrainingServer
    from chatcore.serving.http_protocol import PatientHttpProtocol

    config = uvicorn.Config(
        "chatcore.asgi:application",
        http=PatientHttpProtocol,
        loop="uvloop",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        # Compressed, a message of 15 MB is 15 KB on the wire.
        ws_per_message_deflate=False,
        ws_max_size=WEBSOCKET_MESSAGE_BYTES,
        # X-Forwarded-For and X-Forwarded-Proto are believed from these, and from nobody else.
        # Without a public address there is no proxy, and whoever is on this machine could name any
        # address and guess passwords from each of them.
        proxy_headers=True,
        forwarded_allow_ips=read_list(
            "CHATCORE_TRUSTED_PROXIES", ["127.0.0.1", "::1"] if settings.PUBLIC_URL else []
        ),
    )
    DrainingServer(config, drain_seconds=settings.DRAIN_SECONDS).run(sockets=sockets)


def open_socket(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Return a listening socket; with `is_shared`, other processes may listen at the same port.

    The kernel spreads new connections over all processes that share a port.
    """
    family, *_, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    server_socket = socket.socket(family)
    server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_shared and hasattr(socket, "SO_REUSEPORT"):
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server_socket.bind(address)
    server_socket.set_inheritable(True)
    return server_socket


if __name__ == "__main__":
    main()
