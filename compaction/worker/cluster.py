"""A django-q2 cluster as we run it: a lane of its own for canaries, names that ps shows, and an end that cannot hang."""

import os
import socket
import threading
import uuid
from datetime import timedelta
from multiprocessing import get_context
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.models import Case, Value, When
from django.dispatch import receiver
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.cluster import Sentinel
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute
from django_q.tasks import async_task

from compaction.worker.processes import Process, list_descendants, set_process_name
from compaction.worker.run_locks import RunLocks
from compaction.worker.tasks import EXECUTE_TASK
from compaction.worker.watchdog import BUSY_WORKER_NAME

fork_context = get_context("fork")
run_locks = RunLocks(settings.DATA_DIR / "in-hand")
FREE_WORKER_NAME = "jobs-free"
CANARY_LIFETIME = timedelta(hours=1)
STATISTICS_INTERVAL = 5.0  # seconds


class LaneBroker(ORM):
    """The shared queue in the database, and before it this cluster's lane: a canary answers for one cluster and overtakes any backlog."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self.lane = f"{self.list_key}@{socket.gethostname()[:40]}:{os.getpid()}"
        self._next_statistics = 0.0

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Take one message: out of the lane if it holds one, else the oldest of the shared queue."""
        rows = self.get_connection().filter(
            key__in=(self.lane, self.list_key), lock__lt=timezone.now()
        )
        row = rows.order_by(
            Case(When(key=self.lane, then=Value(0)), default=Value(1)), "id"
        ).first()
        if row is None:
            sleep(Conf.POLL)
            return None
        lock_count = (
            self.get_connection().filter(pk=row.pk, lock=row.lock).update(lock=self.timeout(row))
        )
        return [(row.pk, row.payload)] if lock_count else None  # None: another cluster was faster

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """Keep statistics, more rarely than django-q2 asks: where the cache is the database each is a durable write."""
        if monotonic() >= self._next_statistics:
            self._next_statistics = monotonic() + STATISTICS_INTERVAL
            super().set_stat(key, value, timeout + int(STATISTICS_INTERVAL))

    def send_canary(self) -> None:
        """Send one through this cluster."""
        async_task("compaction.worker.tasks.canary", uuid.uuid4().hex, cluster=self.lane)

    def is_canary_out(self) -> bool:
        """Whether a canary has not come back yet."""
        return OrmQ.objects.filter(key=self.lane).exists()

    def delete_canaries(self) -> None:
        """Remove what an earlier cluster of this lane, or one long gone, left behind."""
        cutoff = timezone.now() - CANARY_LIFETIME
        OrmQ.objects.filter(key=self.lane).delete()
        OrmQ.objects.filter(key__startswith=f"{self.list_key}@", lock__lt=cutoff).delete()


class Cluster:
    """One sentinel and its processes.

    Not django_q's own class of that name: it stops inside a signal handler and waits without end for a sentinel that does not answer.
    """

    def __init__(self, broker: LaneBroker, *, workers: int) -> None:
        Conf.WORKERS = workers
        self._stop_event = fork_context.Event()
        connections.close_all()  # no connection may be shared over a fork
        self._sentinel = fork_context.Process(
            target=Sentinel, args=(self._stop_event, fork_context.Event(), uuid.uuid4(), broker)
        )
        self._sentinel.start()

    def is_alive(self) -> bool:
        """Whether its sentinel lives; without it nothing replaces a dead worker."""
        return self._sentinel.is_alive()

    def list_processes(self) -> list[Process]:
        """All its processes, the sentinel among them."""
        return list_descendants(os.getpid())

    def stop(self, *, grace: float) -> None:
        """Let tasks in hand end within `grace` seconds, then kill."""
        # set() waits for whoever sleeps on the event, for ever if that one was killed or stopped in its sleep.
        threading.Thread(target=self._stop_event.set, daemon=True).start()
        self._sentinel.join(grace)
        self.kill()

    def kill(self) -> None:
        """Kill all of it; its processes die with their sentinel."""
        self._sentinel.kill()
        self._sentinel.join()


@receiver(post_spawn)
@receiver(post_execute_in_worker)
def _mark_worker_free(**_: Any) -> None:
    set_process_name(FREE_WORKER_NAME)
    run_locks.release_lock()


@receiver(pre_execute)
def _mark_worker_busy(task: dict[str, Any], **_: Any) -> None:
    set_process_name(BUSY_WORKER_NAME)
    if task["func"] == EXECUTE_TASK:
        run_locks.acquire_lock(task["args"][0])
