"""Keep one working cluster: start it, watch it, and replace it when it dies or hangs.

For django-q2's sake: a cluster of it that hangs does not notice. The supervisor executes no task
itself, so it can be trusted to do that, and to sweep for lost work every 15 seconds.
"""

import logging
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

from django.db import close_old_connections

from compaction.backends import registry as backend_registry
from compaction.patience import is_outage
from compaction.runs import engine, retention
from compaction.runs.beats import record_beat, remove_beat
from compaction.worker.broker import LaneBroker
from compaction.worker.cluster import Cluster
from compaction.worker.heartbeat import Heartbeat
from compaction.worker.run_locks import run_locks
from compaction.worker.tasks import MAX_RUN_SECONDS, requeue_run
from compaction.worker.watchdog import Watchdog

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# All in seconds.
TICK_INTERVAL = 0.2  # how late a signal or a dead sentinel may be noticed
CHECK_INTERVAL = 1.0
MAINTENANCE_INTERVAL = 15.0
PRUNE_INTERVAL = 3600.0
LOG_INTERVAL = 60.0
PRUNE_SECONDS = 1.0  # at a time: meanwhile nobody watches the cluster
STOP_GRACE = 8.0  # for running tasks when the worker is asked to stop
MAX_RESTART_DELAY = 3
MAX_FAILED_CLUSTERS = 5  # in a row, none of which returned a canary


class WorkerSupervisor:
    """The process above the cluster. Signal handlers call `request_stop`; all else is in `run`."""

    def __init__(self, *, workers: int, patience: float) -> None:
        self.workers = workers
        self.patience = patience
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.broker = LaneBroker()
        self._stop_requested = False
        self._failed_clusters = 0
        self._next_prune = 0.0
        self._heartbeat = Heartbeat()

    def request_stop(self, *_: Any) -> None:
        """Ask `run` to return. This runs inside signal handlers, so it only sets a flag."""
        self._stop_requested = True

    def run(self) -> int:
        """Work until asked to stop. Return the exit code: 1 if one cluster after another failed."""
        while not self._stop_requested and self._failed_clusters < MAX_FAILED_CLUSTERS:
            self._heartbeat.beat()
            time.sleep(min(self._failed_clusters, MAX_RESTART_DELAY))
            self._run_cluster()
        attempt(remove_beat, self.name)
        return 0 if self._stop_requested else 1

    def _run_cluster(self) -> None:
        attempt(self.broker.delete_canaries)
        attempt(engine.resend_waiting_runs)
        cluster = Cluster(self.broker, workers=self.workers)
        watchdog = Watchdog(
            self.broker,
            workers=self.workers,
            max_task_seconds=MAX_RUN_SECONDS,
            patience=self.patience,
        )
        complaint = self._watch_cluster(cluster, watchdog)
        if watchdog.has_canary_returned:
            self._failed_clusters = 0
        else:
            self._failed_clusters += 1
        if complaint is None:
            logger.info("asked to stop: stopping the cluster")
            cluster.stop(grace=STOP_GRACE)
        else:
            logger.error("the cluster does not work, starting another: %s", complaint)
            cluster.kill()
        # Those runs were in the hands of workers that lived until now.
        requeue_abandoned_runs(is_innocent=True)

    def _watch_cluster(self, cluster: Cluster, watchdog: Watchdog) -> str | None:
        """Wait until the cluster fails, and return why; None when asked to stop."""
        last_check = time.monotonic()
        next_maintenance = 0.0
        is_reached = True
        while not self._stop_requested:
            time.sleep(TICK_INTERVAL)
            self._heartbeat.beat()
            now = time.monotonic()
            if not cluster.is_alive():
                return "its sentinel died"
            if now - last_check >= CHECK_INTERVAL:
                # A laptop that was suspended has not waited for its cluster meanwhile.
                seconds = min(now - last_check, 2 * CHECK_INTERVAL)
                last_check = now
                # A check that a database out of reach has failed says nothing about the cluster.
                check = attempt(watchdog.check_cluster, seconds, cluster.list_processes())
                if check.result is not None:
                    return check.result
                # A death is the run's own only in a cluster that works. Of one that hangs, and is
                # replaced a moment later, nobody is to blame.
                if not watchdog.has_stuck_process:
                    requeue_abandoned_runs()
            if now >= next_maintenance:
                next_maintenance = now + MAINTENANCE_INTERVAL
                # While the database was away, living workers could not renew their leases either.
                was_reached = is_reached
                is_reached = attempt(record_beat, self.name, self.workers).is_success
                if was_reached and is_reached:
                    attempt(resend_lost_runs)
                attempt(recover_turns)
                if now >= self._next_prune and attempt(prune_records).result:
                    self._next_prune = now + PRUNE_INTERVAL
        return None


def requeue_abandoned_runs(*, is_innocent: bool = False) -> None:
    """Send the runs of this machine's dead workers again, without waiting for their leases.

    Innocent ones were killed with their cluster, which counts as no death.
    """
    for run_id in run_locks.collect_abandoned_runs():
        logger.warning("a worker died while it worked on compaction run %s", run_id)
        attempt(requeue_run, run_id, is_innocent=is_innocent)


def resend_lost_runs() -> None:
    """Send lost runs again."""
    if run_count := engine.resend_lost_runs():
        logger.warning("sent %s lost compaction runs again", run_count)


def recover_turns() -> None:
    """Close the turns of processes that died."""
    backend_registry.get_backend().recover_turns()


def prune_records() -> bool:
    """Delete old records of runs for a moment; return True if none is left."""
    return retention.prune_records(seconds=PRUNE_SECONDS)


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """What became of a call: its result, or nothing because it raised."""

    is_success: bool
    result: T | None = None


def attempt(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Attempt[T]:
    """Call a function that a database out of reach may break; log that once a minute.

    Whatever calls this does so again a moment later, so no error may end the supervisor.
    """
    close_old_connections()
    try:
        return Attempt(is_success=True, result=function(*args, **kwargs))
    except Exception as error:
        name = getattr(function, "__name__", str(function))
        if time.monotonic() >= _next_logs.get(name, 0.0):
            _next_logs[name] = time.monotonic() + LOG_INTERVAL
            logger.error("the worker could not %s: %s", name, error, exc_info=not is_outage(error))
        return Attempt(is_success=False)


_next_logs: dict[str, float] = {}
