"""Decides whether the job cluster works: its canary must come back, and no process of it may stay stopped or unburied."""

from collections.abc import Sequence
from typing import Protocol

from compaction.worker.processes import STATE_STOPPED, STATE_ZOMBIE, Process

CANARY_INTERVAL = 10.0  # seconds between a canary's return and the next
PATIENCE = 20.0  # seconds a canary may be out while a worker is free to take it
BUSY_WORKER_NAME = "jobs-busy"  # a worker with a task in hand calls itself so in ps


class CanaryLane(Protocol):
    """The way through one cluster's queue, workers and monitor, and back."""

    def send_canary(self) -> None: ...

    def is_canary_out(self) -> bool: ...


class Watchdog:
    """Watches one cluster; `look()` once a second or so. django-q2's own status is not asked: a hung cluster says "Working".

    Patience is counted in the seconds the caller saw pass, not by a clock: a suspended laptop does not make a cluster hung.
    """

    def __init__(
        self, lane: CanaryLane, *, workers: int, max_task_seconds: float, patience: float = PATIENCE
    ) -> None:
        self.lane = lane
        self.workers = workers
        self.patience = patience
        self.max_wait = max_task_seconds + patience
        self.has_canary_returned = False  # a canary came back at least once
        self._pids: set[int] = set()
        self._stuck_seconds: dict[int, float] = {}
        self._canary_seconds: float | None = None
        self._free_seconds = 0.0
        self._rest_seconds = 0.0

    def check_cluster(self, seconds: float, members: Sequence[Process]) -> str | None:
        """Take notice that `seconds` passed; returns what is wrong with the cluster, or None while it may be well."""
        complaint = self._check_processes(seconds, members) or self._check_canary(seconds, members)
        if self._pids != (pids := {process.pid for process in members}):
            self._pids, self._rest_seconds = (
                pids,
                0.0,
            )  # who died may have held the queue's lock: ask at the next look
        return complaint

    def _check_processes(self, seconds: float, members: Sequence[Process]) -> str | None:
        """A guard that hangs buries nobody; a stopped worker keeps its task, and would wake up beside the one that took it over."""
        stuck_processes = {
            process.pid: process
            for process in members
            if process.state in (STATE_STOPPED, STATE_ZOMBIE)
        }
        self._stuck_seconds = {
            pid: self._stuck_seconds.get(pid, 0.0) + seconds for pid in stuck_processes
        }
        worst_pid = max(self._stuck_seconds, key=self._stuck_seconds.__getitem__, default=None)
        if worst_pid is None or self._stuck_seconds[worst_pid] < self.patience / 2:
            return None
        return f"process {worst_pid} is {'stopped' if stuck_processes[worst_pid].state == STATE_STOPPED else 'dead, and nobody noticed'}"

    def _check_canary(self, seconds: float, members: Sequence[Process]) -> str | None:
        if not self.lane.is_canary_out():
            self._send_canary_when_due(seconds)
            return None
        self._canary_seconds = (self._canary_seconds or 0.0) + seconds
        if sum(process.name == BUSY_WORKER_NAME for process in members) < self.workers:
            self._free_seconds += seconds
        if self._free_seconds > self.patience or self._canary_seconds > self.max_wait:
            return f"a canary has been out for {self._canary_seconds:.0f} s"
        return None

    def _send_canary_when_due(self, seconds: float) -> None:
        """The canary is back, or none was sent yet: rest, then send one."""
        self.has_canary_returned = self.has_canary_returned or self._canary_seconds is not None
        self._rest_seconds = (
            self._rest_seconds - seconds if self._canary_seconds is None else CANARY_INTERVAL
        )
        self._canary_seconds, self._free_seconds = None, 0.0
        if self._rest_seconds <= 0:
            self.lane.send_canary()
            self._canary_seconds = 0.0
