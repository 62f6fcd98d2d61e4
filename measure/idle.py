"""Weigh a server that nobody uses: python -m measure.idle [--seconds 120] [--list].

`serve` without a model, a minute after its first page was read: the memory of its processes (PSS,
what they share counted once), their processor time, and what they write to the disk.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from measure.moving_in import run_installation

SETTLE_SECONDS = 60.0
MAX_MEGABYTES = 430
MAX_PERCENT = 0.5
MAX_KILOBYTES_A_SECOND = 1.0


@dataclass(frozen=True)
class Reading:
    """What one process has used up to now."""

    name: str
    seconds: float
    written: int
    memory: int


def find_server() -> psutil.Process:
    """Return the process that serves, which this one has started."""
    [server] = psutil.Process().children()
    return server


def read_processes(server: psutil.Process) -> dict[int, Reading]:
    """Return what the processes of the server have used, by their ids."""
    readings = {}
    for process in [server, *server.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            readings[process.pid] = Reading(
                name=" ".join(process.cmdline())[-60:],
                seconds=times.user + times.system,
                written=process.io_counters().write_bytes,
                memory=process.memory_full_info().pss,
            )
    return readings


def main() -> int:
    """Measure, print, and return 1 if a figure is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long it is looked at")
    parser.add_argument("--list", action="store_true", help="name the processes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, run_installation(Path(folder)) as link:
        httpx2.get(link, follow_redirects=True).raise_for_status()
        server = find_server()
        time.sleep(SETTLE_SECONDS)
        before = read_processes(server)
        start = time.monotonic()
        time.sleep(options.seconds)
        after = read_processes(server)
        seconds = time.monotonic() - start
    used = {pid: after[pid].seconds - before[pid].seconds for pid in before.keys() & after.keys()}
    written = {pid: after[pid].written - before[pid].written for pid in used}
    if options.list:
        for pid, reading in after.items():
            percent, kilobytes = 100 * used.get(pid, 0) / seconds, written.get(pid, 0) / 1024
            print(
                f"  {percent:.2f} %, {kilobytes:.0f} KB, {reading.memory >> 20} MB: {reading.name}"
            )
    megabytes = sum(reading.memory for reading in after.values()) / 2**20
    percent = 100 * sum(used.values()) / seconds
    rate = sum(written.values()) / 1024 / seconds
    print(f"{len(after)} processes, {megabytes:.0f} MB, {percent:.2f} % of a core, {rate:.2f} KB/s")
    is_light = megabytes <= MAX_MEGABYTES and percent <= MAX_PERCENT
    return int(not is_light or rate > MAX_KILOBYTES_A_SECOND)


if __name__ == "__main__":
    sys.exit(main())
