"""Shift the clock of a started process as a test says; Python imports this before anything else.

The file that CHATCORE_TEST_CLOCK names has the seconds by which the clock is wrong. They may change
while the process lives. Only the clock of the day moves; the monotonic one does not, as in life.
"""

import os
import threading
import time
from pathlib import Path

LOOK_SECONDS = 0.05


def follow(file: Path) -> None:
    import time_machine

    travel = None
    shift = 0.0
    while True:
        new_shift = float(file.read_text() or 0)
        if new_shift != shift:
            if travel:
                travel.stop()
            travel = time_machine.travel(time.time() + new_shift, tick=True)
            travel.start()
            shift = new_shift
        time.sleep(LOOK_SECONDS)


def begin() -> None:
    threading.Thread(target=follow, args=(path,), name="clock-shim", daemon=True).start()


path = Path(os.environ.get("CHATCORE_TEST_CLOCK", "/dev/null"))
if path.is_file():
    begin()
    os.register_at_fork(after_in_child=begin)  # threads do not survive a fork
