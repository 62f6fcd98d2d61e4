"""Check the address at which a command is to listen, before anything is started."""

import errno
import socket

from django.core.management.base import CommandError

MAX_PORT = 65_535


def check_address(host: str, port: int, *, is_shared: bool = False) -> None:
    """Raise CommandError, with one sentence, unless a server can listen there.

    With `is_shared`, another server that shares its port may listen there already.
    """
    if not 1 <= port <= MAX_PORT:
        raise CommandError(f"--port is {port}; it must be from 1 to {MAX_PORT}.", returncode=2)
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family) as probe:
            # Like the web server's own socket, so that a port which was just closed counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if is_shared and hasattr(socket, "SO_REUSEPORT"):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            probe.bind(address)
    except OSError as error:
        reason = "it is taken" if error.errno == errno.EADDRINUSE else error
        raise CommandError(
            f"Cannot listen on {host} port {port}: {reason}. Choose another with --port.",
            returncode=2,
        ) from None
