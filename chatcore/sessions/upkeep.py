"""Delete by the clock only while the clock can be believed.

Whatever has a time to live goes by rounds. A machine whose clock is wrong would delete what is of
today, and nothing brings it back. So a round asks first, by the database's clock, and waits after
a jump; `/readyz` says so.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from django.utils import timezone

from chatcore.base.databases.clock import read_clock
from chatcore.base.paused_deletion import note_problem
from chatcore.models import Installation

T = TypeVar("T")

# Of two clocks, and of one clock beside the time that the machine has measured itself.
TOLERANCE = timedelta(minutes=2)
# After a start of the machine, a longer time without a round looks as a clock that was set ahead.
LONGEST_REST = timedelta(days=2)
# After a jump, so that somebody, or the network's time, can set the clock right.
WAIT_AFTER_JUMP = timedelta(days=1)
BOOT_FILE = Path("/proc/sys/kernel/random/boot_id")
NOTE_INTERVAL = timedelta(minutes=5)  # between two writes of the time of a round

_last_reading: tuple[datetime, float] | None = None


def run_if_clock_is_right(work: Callable[[], T]) -> T | None:
    """Run a round of deletion, or leave it out while the clock cannot be believed."""
    problem = find_clock_problem()
    note_problem("clock", problem)
    return None if problem else work()


def find_clock_problem() -> str:
    """Return why nothing may be deleted by the clock now; empty if all is well."""
    now = read_clock()
    difference = abs(timezone.now() - now)
    if difference > TOLERANCE:
        return (
            f"The clock of this machine differs from the database's by {_round(difference)}."
            " This machine deletes nothing until it is set right."
        )
    installation = Installation.load()
    boot, seconds = read_machine_time()
    jump = _measure_jump(now, installation, boot, seconds)
    doubted_at = installation.clock_doubted_at
    read_at = installation.clock_read_at
    if doubted_at is None and jump > TOLERANCE:
        doubted_at = now
    if doubted_at is not None:
        is_set_back = now < doubted_at - TOLERANCE
        if is_set_back or now - doubted_at >= WAIT_AFTER_JUMP:
            doubted_at = None
    if doubted_at != installation.clock_doubted_at:
        Installation.objects.filter(pk=1).update(clock_doubted_at=doubted_at)
    if doubted_at is not None:
        return (
            "The clock has jumped, or nothing ran for days."
            f" Nothing is deleted before {doubted_at + WAIT_AFTER_JUMP:%Y-%m-%d %H:%M} UTC."
        )
    if read_at is None or abs(now - read_at) > NOTE_INTERVAL:
        Installation.objects.filter(pk=1).update(
            clock_read_at=now, clock_boot=boot, clock_seconds=seconds
        )
    return ""


def read_machine_time() -> tuple[str, float]:
    """Return which start of the machine this is, and the seconds since then, sleep included.

    Nobody sets this clock. Where the system does not tell the start, the first is empty.
    """
    try:
        boot = BOOT_FILE.read_text().strip()
        return boot, time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        return "", time.monotonic()


def _measure_jump(
    now: datetime, installation: Installation, boot: str, seconds: float
) -> timedelta:
    """Return how far the clock went ahead of the machine's own time since the last reading.

    That is this process's, or what another one has stored since the machine was started. After a
    start, a rest that is not longer than LONGEST_REST is believed.
    """
    global _last_reading
    last_reading, _last_reading = _last_reading, (now, seconds)
    read_at = installation.clock_read_at
    if last_reading is None and read_at is not None:
        if not boot or boot != installation.clock_boot:
            return max(timedelta(), now - read_at - LONGEST_REST + TOLERANCE)
        last_reading = (read_at, installation.clock_seconds)
    if last_reading is None:
        return timedelta()
    return now - last_reading[0] - timedelta(seconds=seconds - last_reading[1])


def _round(difference: timedelta) -> timedelta:
    return timedelta(seconds=round(difference.total_seconds()))
