"""Keeps one working cluster: starts it, watches it, replaces it when it dies or hangs; and does the chores no task can be trusted with."""

import logging
import time
from typing import Any

from django.db import close_old_connections

from compaction.backends import registry as backend_registry
from compaction.runs import engine
from compaction.worker.cluster import Cluster, LaneBroker, run_locks
from compaction.worker.tasks import MAX_RUN_SECONDS, requeue_run, requeue_waiting_runs
from compaction.worker.watchdog import Watchdog

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.2  # seconds; how late a signal or a dead sentinel may be noticed
CHECK_INTERVAL = 1.0
MAINTENANCE_INTERVAL = 30.0
GRACE_SECONDS = 8.0  # seconds a task in hand has to end when we are asked to stop
MAX_FAILURES = 5  # clusters in a row of which no canary came back


class WorkerSupervisor:
    """The process above the cluster. Signal handlers only call `ask_to_stop`; everything else happens in `run`."""

    def __init__(self, *, workers: int, patience: float) -> None:
        self.workers = workers
        self.patience = patience
        self.broker = LaneBroker()
        self._stop_requested = False
        self._failure_count = 0

    def request_stop(self, *_: Any) -> None:
        """Set a flag and nothing else: this runs inside signal handlers."""
        self._stop_requested = True

    def run(self) -> int:
        """Work until asked to stop; returns the exit code: 0, or 1 when cluster after cluster failed and others must judge."""
        while not self._stop_requested and self._failure_count < MAX_FAILURES:
            time.sleep(min(self._failure_count, 3))
            self._run_cluster()
        return 0 if self._stop_requested else 1

    def _run_cluster(self) -> None:
        """One cluster from its start to its end."""
        run_safely(self.broker.delete_canaries)
        run_safely(requeue_waiting_runs)
        cluster = Cluster(self.broker, workers=self.workers)
        watchdog = Watchdog(
            self.broker,
            workers=self.workers,
            max_task_seconds=MAX_RUN_SECONDS,
            patience=self.patience,
        )
        reason = self._watch_cluster(cluster, watchdog)
        self._failure_count = 0 if watchdog.has_canary_returned else self._failure_count + 1
        if reason is None:
            logger.info("asked to stop: stopping the cluster")
            cluster.stop(grace=GRACE_SECONDS)
        else:
            logger.error("the cluster does not work, starting another: %s", reason)
            cluster.kill()
        requeue_abandoned_runs()

    def _watch_cluster(self, cluster: Cluster, watchdog: Watchdog) -> str | None:
        """Wait until the cluster fails, and say why; None when we were asked to stop."""
        last_check, next_maintenance = time.monotonic(), 0.0
        while not self._stop_requested:
            time.sleep(TICK_SECONDS)
            now = time.monotonic()
            if not cluster.is_alive():
                return "its sentinel died"
            if now - last_check >= CHECK_INTERVAL:
                seconds, last_check = min(now - last_check, 2 * CHECK_INTERVAL), now
                requeue_abandoned_runs()
                if reason := run_safely(watchdog.check_cluster, seconds, cluster.list_processes()):
                    return str(reason)
            if now >= next_maintenance:
                next_maintenance = now + MAINTENANCE_INTERVAL
                run_safely(run_maintenance)
        return None


def requeue_abandoned_runs() -> None:
    """Give back what dead workers of this machine had in hand: it need not wait until its lease ends."""
    for run_id in run_locks.collect_abandoned_runs():
        logger.warning("a worker died with compaction run %s in hand", run_id)
        run_safely(requeue_run, run_id)


def run_maintenance() -> None:
    """What brings back the work of processes that died: runs nobody told the queue of, leases that ended, answers cut off."""
    if run_count := engine.resend_lost_runs():
        logger.warning("swept %s compaction runs", run_count)
    backend_registry.get_backend().recover_turns()


def run_safely(function: Any, *args: Any) -> Any:
    """Do a piece of work that a database out of reach may fail: the next time is soon, and it says nothing about the cluster."""
    close_old_connections()
    try:
        return function(*args)
    except Exception:
        logger.exception("the worker could not %s", getattr(function, "__name__", function))
        return None
