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
    while True:
        look = time.monotonic()
        if condition():
            return time.monotonic() - start
        now = time.monotonic()
        assert now - start < seconds, f"not within {seconds} s: {what or condition}"
        # To look must not take the processor from what is waited for.
        time.sleep(max(0.01, 4 * (now - look)))
