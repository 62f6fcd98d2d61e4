"""Bind the address at which a command is to listen, before anything is started."""

import errno
import socket

from django.core.management.base import CommandError

MAX_PORT = 65_535


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is bound and does not listen yet.

    Raises CommandError, with one sentence, if that cannot be.
    """
    if not 1 <= port <= MAX_PORT:
        raise CommandError(f"--port is {port}; it must be from 1 to {MAX_PORT}.", returncode=2)
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        server_socket = socket.socket(family)
        # A port that was just closed counts as free.
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server_socket.bind(address)
    except OSError as error:
        reason = "it is taken" if error.errno == errno.EADDRINUSE else error
        raise CommandError(
            f"Cannot listen on {host} port {port}: {reason}. Choose another with --port.",
            returncode=2,
        ) from None
    return server_socket
