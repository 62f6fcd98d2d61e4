"""Tokens that say when they were sent, so that every reader can tell how late each of them is.

A token is five hexadecimal digits and a space: the machine's monotonic clock, which all processes
share, in tenths of a millisecond. The count starts again after 104 seconds, so a token that is
later than that looks early.
"""

import time

TICKS = 10_000  # a second
CYCLE = 16**5
TOKEN_LENGTH = 6  # characters


def build_token() -> bytes:
    """Return a token that is sent now."""
    return b"%05x " % (int(time.monotonic() * TICKS) % CYCLE)


def measure_lateness(text: str) -> list[int]:
    """Return how long ago each token of the text was sent, in tenths of a millisecond.

    Raises ValueError if the text does not consist of whole tokens.
    """
    if len(text) % TOKEN_LENGTH:
        raise ValueError(f"{len(text)} characters are no whole tokens")
    now = int(time.monotonic() * TICKS)
    return [(now - int(token, 16)) % CYCLE for token in text.split()]
