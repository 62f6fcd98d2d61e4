"""Wait for somebody else's server from a thread, with no database connection in hand."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from chatcore.base.threads import give_back_connection

T = TypeVar("T")


def wait_for_stranger(work: Coroutine[object, None, T]) -> T:
    """Run a coroutine to its end; the calling thread must not run an event loop."""
    give_back_connection()
    return asyncio.run(work)
