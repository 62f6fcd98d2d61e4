"""Decides whether the job cluster works: its canary must come back, and no process of it may stay stopped or unburied."""

from collections.abc import Sequence
from typing import Protocol

from compaction.worker.processes import DEAD, STOPPED, Process

CANARY_EVERY = 10.0  # seconds between a canary's return and the next
PATIENCE = 20.0  # seconds a canary may be out while a worker is free to take it
BUSY = "jobs-busy"  # a worker with a task in hand calls itself so in ps


class Lane(Protocol):
    """The way through one cluster's queue, workers and monitor, and back."""

    def send_canary(self) -> None: ...

    def canary_is_out(self) -> bool: ...


class Watchdog:
    """Watches one cluster; `look()` once a second or so. django-q2's own status is not asked: a hung cluster says "Working".

    Patience is counted in the seconds the caller saw pass, not by a clock: a suspended laptop does not make a cluster hung.
    """

    def __init__(
        self, lane: Lane, *, workers: int, longest_task: float, patience: float = PATIENCE
    ) -> None:
        self.lane = lane
        self.workers = workers
        self.patience = patience
        self.longest_wait = longest_task + patience
        self.proven = False  # a canary came back at least once
        self._pids: set[int] = set()
        self._ill: dict[int, float] = {}
        self._out: float | None = None
        self._free = 0.0
        self._rest = 0.0

    def look(self, seconds: float, members: Sequence[Process]) -> str | None:
        """Take notice that `seconds` passed; returns what is wrong with the cluster, or None while it may be well."""
        complaint = self._illness(seconds, members) or self._silence(seconds, members)
        if self._pids != (pids := {process.pid for process in members}):
            self._pids, self._rest = (
                pids,
                0.0,
            )  # who died may have held the queue's lock: ask at the next look
        return complaint

    def _illness(self, seconds: float, members: Sequence[Process]) -> str | None:
        """A guard that hangs buries nobody; a stopped worker keeps its task, and would wake up beside the one that took it over."""
        ill = {process.pid: process for process in members if process.state in (STOPPED, DEAD)}
        self._ill = {pid: self._ill.get(pid, 0.0) + seconds for pid in ill}
        worst = max(self._ill, key=self._ill.__getitem__, default=None)
        if worst is None or self._ill[worst] < self.patience / 2:
            return None
        return f"process {worst} is {'stopped' if ill[worst].state == STOPPED else 'dead, and nobody noticed'}"

    def _silence(self, seconds: float, members: Sequence[Process]) -> str | None:
        if not self.lane.canary_is_out():
            self._welcome(seconds)
            return None
        self._out = (self._out or 0.0) + seconds
        if sum(process.name == BUSY for process in members) < self.workers:
            self._free += seconds
        if self._free > self.patience or self._out > self.longest_wait:
            return f"a canary has been out for {self._out:.0f} s"
        return None

    def _welcome(self, seconds: float) -> None:
        """The canary is back, or none was sent yet: rest, then send one."""
        self.proven = self.proven or self._out is not None
        self._rest = self._rest - seconds if self._out is None else CANARY_EVERY
        self._out, self._free = None, 0.0
        if self._rest <= 0:
            self.lane.send_canary()
            self._out = 0.0
