"""Decide whether the cluster works, from two signs that cannot lie.

A canary that was sent must come back, and no process may stay stopped, or dead without having been
reaped. For django-q2's sake: its own status says "Working" for a cluster that hangs.
"""

from collections.abc import Sequence
from typing import Protocol

from compaction.worker.processes import STATE_STOPPED, STATE_ZOMBIE, Process

CANARY_INTERVAL = 10.0  # seconds between a canary's return and the next
PATIENCE = 20.0  # seconds that a canary may be out while a worker is free to take it
BUSY_WORKER_NAME = "jobs-busy"  # the name in ps of a worker that executes a task


class CanaryLane(Protocol):
    """The way of a canary through one cluster and back."""

    def send_canary(self) -> None: ...

    def is_canary_out(self) -> bool: ...


class Watchdog:
    """The judgment of one cluster. Call `check_cluster` about once a second.

    Time is counted in the seconds that the caller reports, not by a clock: a laptop that was
    suspended does not make its cluster hung.
    """

    def __init__(
        self, lane: CanaryLane, *, workers: int, max_task_seconds: float, patience: float = PATIENCE
    ) -> None:
        self.lane = lane
        self.workers = workers
        self.patience = patience
        self.max_wait = max_task_seconds + patience
        self.has_canary_returned = False
        self._pids: set[int] = set()
        self._stuck_seconds: dict[int, float] = {}
        self._canary_seconds: float | None = None
        self._free_seconds = 0.0
        self._rest_seconds = 0.0

    @property
    def has_stuck_process(self) -> bool:
        """True while a process is stopped, or dead and not reaped: the cluster may be at fault."""
        return bool(self._stuck_seconds)

    def check_cluster(self, seconds: float, members: Sequence[Process]) -> str | None:
        """Note that `seconds` passed. Return what is wrong with the cluster, or None."""
        complaint = self._check_processes(seconds, members) or self._check_canary(seconds, members)
        pids = {process.pid for process in members}
        if pids != self._pids:
            # A process that died may have held the queue's lock, so the next check sends a canary.
            self._pids = pids
            self._rest_seconds = 0.0
        return complaint

    def _check_processes(self, seconds: float, members: Sequence[Process]) -> str | None:
        # A dead process stays in the table when a sentinel that hangs does not reap it. A stopped
        # worker keeps its task, and would go on beside the worker that has taken the task over.
        stuck = {
            process.pid: process
            for process in members
            if process.state in (STATE_STOPPED, STATE_ZOMBIE)
        }
        self._stuck_seconds = {pid: self._stuck_seconds.get(pid, 0.0) + seconds for pid in stuck}
        worst_pid = max(self._stuck_seconds, key=self._stuck_seconds.__getitem__, default=None)
        if worst_pid is None or self._stuck_seconds[worst_pid] < self.patience / 2:
            return None
        is_stopped = stuck[worst_pid].state == STATE_STOPPED
        return f"process {worst_pid} is {'stopped' if is_stopped else 'dead, and nobody noticed'}"

    def _check_canary(self, seconds: float, members: Sequence[Process]) -> str | None:
        if not self.lane.is_canary_out():
            self._send_canary_when_due(seconds)
            return None
        self._canary_seconds = (self._canary_seconds or 0.0) + seconds
        busy_workers = sum(process.name == BUSY_WORKER_NAME for process in members)
        if busy_workers < self.workers:
            self._free_seconds += seconds
        if self._free_seconds > self.patience or self._canary_seconds > self.max_wait:
            return f"a canary has been out for {self._canary_seconds:.0f} s"
        return None

    def _send_canary_when_due(self, seconds: float) -> None:
        if self._canary_seconds is None:
            self._rest_seconds -= seconds
        else:
            self.has_canary_returned = True
            self._rest_seconds = CANARY_INTERVAL
        self._canary_seconds = None
        self._free_seconds = 0.0
        if self._rest_seconds <= 0:
            self.lane.send_canary()
            self._canary_seconds = 0.0
