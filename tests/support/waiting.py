"""Wait for what another thread or process does."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0  # far more than anything takes, even on a slow and busy machine


def wait_until(
    condition: Callable[[], object], *, seconds: float = PATIENCE_SECONDS, what: str = ""
) -> float:
    """Wait until the condition is true, and return the seconds that it took.

    Raise AssertionError if it does not become true in time; `what` says what was waited for.
    """
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, f"not within {seconds} s: {what or condition}"
        time.sleep(0.01)
    return time.monotonic() - start
