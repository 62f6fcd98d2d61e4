"""Wait for what another thread or process does, and tell at the end what took longest."""

import asyncio
import time
from collections.abc import Callable

PATIENCE_SECONDS = 120.0  # far more than anything takes, even on a slow and busy machine
LOOK_SECONDS = 0.01

waits: list[tuple[float, str]] = []  # of this process: the seconds, and what was waited for


def wait_until(
    condition: Callable[[], object], *, seconds: float = PATIENCE_SECONDS, what: str = ""
) -> float:
    """Wait until the condition is true, and return the seconds that it took.

    Raise AssertionError if it does not become true in time; `what` says what was waited for.
    """
    start = time.monotonic()
    while True:
        look = time.monotonic()
        if condition():
            return _note_wait(start, condition, what)
        now = time.monotonic()
        assert now - start < seconds, f"not within {seconds} s: {_describe(condition, what)}"
        # To look must not take the processor from what is waited for.
        time.sleep(max(LOOK_SECONDS, 4 * (now - look)))


async def wait_until_async(condition: Callable[[], object], *, what: str = "") -> float:
    """Do as `wait_until`, while the event loop goes on. The condition must not ask the database."""
    start = time.monotonic()
    while not condition():
        waited_seconds = time.monotonic() - start
        assert waited_seconds < PATIENCE_SECONDS, f"in vain: {_describe(condition, what)}"
        await asyncio.sleep(LOOK_SECONDS)
    return _note_wait(start, condition, what)


async def let_the_loop_turn(times: int = 1) -> None:
    """Let everything else on this event loop go on, so many times."""
    for _ in range(times):
        await asyncio.sleep(0)


def _note_wait(start: float, condition: Callable[[], object], what: str) -> float:
    seconds = time.monotonic() - start
    waits.append((seconds, _describe(condition, what)))
    return seconds


def _describe(condition: Callable[[], object], what: str) -> str:
    code = getattr(condition, "__code__", None)
    return what or (f"{code.co_filename}:{code.co_firstlineno}" if code else str(condition))
