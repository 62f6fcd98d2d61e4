"""Keeps one working cluster: starts it, watches it, replaces it when it dies or hangs; and does the chores no task can be trusted with."""

import logging
import time
from typing import Any

from django.db import close_old_connections

from compaction.backends import registry as backend_registry
from compaction.runs import engine
from compaction.worker.cluster import Cluster, Queue, hands
from compaction.worker.tasks import LONGEST_RUN, give_back, tell_again
from compaction.worker.watchdog import Watchdog

logger = logging.getLogger(__name__)

TICK = 0.2  # seconds; how late a signal or a dead sentinel may be noticed
LOOK_EVERY = 1.0
CHORES_EVERY = 30.0
GRACE = 8.0  # seconds a task in hand has to end when we are asked to stop
GIVE_UP_AFTER = 5  # clusters in a row of which no canary came back


class Keeper:
    """The process above the cluster. Signal handlers only call `ask_to_stop`; everything else happens in `run`."""

    def __init__(self, *, workers: int, patience: float) -> None:
        self.workers = workers
        self.patience = patience
        self.queue = Queue()
        self._stopping = False
        self._useless = 0

    def ask_to_stop(self, *_: Any) -> None:
        """Set a flag and nothing else: this runs inside signal handlers."""
        self._stopping = True

    def run(self) -> int:
        """Work until asked to stop; returns the exit code: 0, or 1 when cluster after cluster failed and others must judge."""
        while not self._stopping and self._useless < GIVE_UP_AFTER:
            time.sleep(min(self._useless, 3))
            self._keep_one()
        return 0 if self._stopping else 1

    def _keep_one(self) -> None:
        """One cluster from its start to its end."""
        attempt(self.queue.forget_canaries)
        attempt(tell_again)
        cluster = Cluster(self.queue, workers=self.workers)
        watchdog = Watchdog(
            self.queue, workers=self.workers, longest_task=LONGEST_RUN, patience=self.patience
        )
        reason = self._watch(cluster, watchdog)
        self._useless = 0 if watchdog.proven else self._useless + 1
        if reason is None:
            logger.info("asked to stop: stopping the cluster")
            cluster.stop(grace=GRACE)
        else:
            logger.error("the cluster does not work, starting another: %s", reason)
            cluster.kill()
        pick_up()

    def _watch(self, cluster: Cluster, watchdog: Watchdog) -> str | None:
        """Wait until the cluster fails, and say why; None when we were asked to stop."""
        looked, next_chores = time.monotonic(), 0.0
        while not self._stopping:
            time.sleep(TICK)
            now = time.monotonic()
            if not cluster.is_alive():
                return "its sentinel died"
            if now - looked >= LOOK_EVERY:
                seconds, looked = min(now - looked, 2 * LOOK_EVERY), now
                pick_up()
                if reason := attempt(watchdog.look, seconds, cluster.members()):
                    return str(reason)
            if now >= next_chores:
                next_chores = now + CHORES_EVERY
                attempt(chores)
        return None


def pick_up() -> None:
    """Give back what dead workers of this machine had in hand: it need not wait until its lease ends."""
    for run_id in hands.dropped():
        logger.warning("a worker died with compaction run %s in hand", run_id)
        attempt(give_back, run_id)


def chores() -> None:
    """What brings back the work of processes that died: runs nobody told the queue of, leases that ended, answers cut off."""
    if swept := engine.sweep():
        logger.warning("swept %s compaction runs", swept)
    backend_registry.get().recover()


def attempt(work: Any, *args: Any) -> Any:
    """Do a piece of work that a database out of reach may fail: the next time is soon, and it says nothing about the cluster."""
    close_old_connections()
    try:
        return work(*args)
    except Exception:
        logger.exception("the worker could not %s", getattr(work, "__name__", work))
        return None
