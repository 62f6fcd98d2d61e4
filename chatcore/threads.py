"""Run blocking database work in pool threads, so that an event loop never waits for it."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections, reset_queries

P = ParamSpec("P")
T = TypeVar("T")


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking `work` in a thread of the loop's pool and return its result.

    Its database connection is given back afterwards. Django binds a connection to its thread, so
    idle threads would otherwise hold all connections of a pool.
    """
    return await sync_to_async(
        functools.partial(_run_with_fresh_connection, work), thread_sensitive=False
    )(*args, **kwargs)


def _run_with_fresh_connection(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()
        # With DEBUG on, Django collects all statements of a connection until a request ends. These
        # threads serve no request, so the list, with its texts, would only grow.
        reset_queries()
