"""Announce events from a process of its own: a program that a line of JSON tells what to do.

`python -m measure.benchmarks.load.announcer` reads `{"sessions": [ids], "each": N, "rate": N}`. It
appends `each` events to each session, `rate` a second, all sessions in one transaction, as one
writer for many answers does. It prints the seconds that all events took.
"""

import json
import sys
import time
from uuid import UUID

import django

from measure.benchmarks.load.stamps import build_token


def announce(sessions: list[str], each: int, rate: float) -> float:
    """Append `each` events to each session, `rate` a second, and return the seconds it took."""
    from django.db import transaction

    from tests.support.events import append_events

    start = time.monotonic()
    for number in range(each):
        with transaction.atomic():
            for session in sessions:
                event = ("session.updated", {"fields": [build_token().decode()]})
                append_events(UUID(session), event)
        time.sleep(max(0.0, start + (number + 1) / rate - time.monotonic()))
    return time.monotonic() - start


if __name__ == "__main__":
    django.setup()
    print(announce(**json.loads(sys.stdin.readline())))
