"""What a process uses: processor time and memory; and how busy the machine is."""

import threading
import time

import psutil

SAMPLE_SECONDS = 0.1
REST_SECONDS = 2.0
REST_SHARE = 0.03  # of a core


def read_cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far, user and system."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def wait_for_rest(pid: int) -> None:
    """Wait until a process has next to nothing to do: at its start it loads both SDKs."""
    while True:
        before = read_cpu_seconds(pid)
        time.sleep(REST_SECONDS)
        if read_cpu_seconds(pid) - before < REST_SECONDS * REST_SHARE:
            return


def read_memory(pid: int) -> float:
    """Return the memory of a process in MB.

    It is the proportional set size: a page of the database file that many connections map counts
    once.
    """
    return float(psutil.Process(pid).memory_full_info().pss) / 2**20


def read_thread_count(pid: int) -> int:
    """Return how many threads a process has."""
    return int(psutil.Process(pid).num_threads())


def read_busy_seconds() -> float:
    """Return the processor time that all processes of the machine took so far."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


class UsageSampler:
    """Samples the processor time of a process, and of the whole machine, in a thread.

    Use it as a context manager; the memory of the process is read when half a run is over.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.samples: list[tuple[float, float, float]] = []  # time, process, machine; seconds
        self._stop_event = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "UsageSampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_event.set()
        self._thread.join()

    def count_process_seconds(self, start: float, end: float) -> float:
        """Return the processor time of the process between two times of the monotonic clock."""
        return self._interpolate(end, 1) - self._interpolate(start, 1)

    def count_machine_seconds(self, start: float, end: float) -> float:
        """Return the processor time of all processes between two times."""
        return self._interpolate(end, 2) - self._interpolate(start, 2)

    def _sample(self) -> None:
        while True:
            self.samples.append((time.monotonic(), read_cpu_seconds(self.pid), read_busy_seconds()))
            if self._stop_event.wait(SAMPLE_SECONDS):
                return

    def _interpolate(self, moment: float, column: int) -> float:
        before = max((s for s in self.samples if s[0] <= moment), default=self.samples[0])
        after = min((s for s in self.samples if s[0] >= moment), default=self.samples[-1])
        if after[0] <= before[0]:
            return before[column]
        share = (moment - before[0]) / (after[0] - before[0])
        return before[column] + share * (after[column] - before[column])
