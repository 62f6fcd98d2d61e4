"""A port that stays free for the program that is to listen there."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hold_port() -> Iterator[int]:
    """Yield a port of this machine that only a program which shares its port can take.

    A port that was only found free may be another test's before the program listens: it takes
    seconds to start. That test's server answers in the meantime, and is then gone.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))  # and never listens, so it gets no connection
        yield holder.getsockname()[1]
