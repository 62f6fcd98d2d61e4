"""Database work beside an event loop: each call in a pool thread, with its connection given back."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections, reset_queries

P = ParamSpec("P")
T = TypeVar("T")


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking `work` in a pool thread; no connection stays pinned to it, so streams do not exhaust a pool."""
    return await sync_to_async(
        functools.partial(_run_with_fresh_connection, work), thread_sensitive=False
    )(*args, **kwargs)


def _run_with_fresh_connection(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()
        reset_queries()  # with DEBUG on, each thread would keep thousands of statements with the texts in them
