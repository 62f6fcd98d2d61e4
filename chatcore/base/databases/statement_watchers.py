"""Call a function around each SQL statement of a connection: Django's `execute_wrappers`.

The only module that touches that list. Django's own `connection.execute_wrapper()` removes whatever
is last in the list, and a receiver of `connection_created` may have added another function after
its own: a pool makes a new connection in the middle of a request.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

# Arguments: the next function to call, and for it SQL, parameters, whether they are many, and a
# context with the keys `connection` and `cursor`.
StatementWatcher = Callable[[Callable[..., object], str, object, bool, dict[str, Any]], object]


def add_watcher(connection: BaseDatabaseWrapper, watcher: StatementWatcher) -> None:
    """Call the function around each statement of the connection, for as long as it exists.

    The connection object outlives its connections to the database, so adding a function twice has
    the effect of once. It stands outside of those that watch for a while.
    """
    if watcher not in connection.execute_wrappers:
        connection.execute_wrappers.insert(0, watcher)


@contextlib.contextmanager
def watch_statements(connection: BaseDatabaseWrapper, watcher: StatementWatcher) -> Iterator[None]:
    """Call the function around each statement of the connection inside of the block."""
    wrappers = connection.execute_wrappers
    wrappers.append(watcher)
    try:
        yield
    finally:
        wrappers.remove(watcher)
