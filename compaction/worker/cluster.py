"""Start and stop one cluster of django-q2: a sentinel process and the workers below it.

For django-q2's sake: its own Cluster stops inside a signal handler, and waits without limit for a
sentinel that does not answer. This one can always be stopped or killed. Its signals tell which
worker is busy.
"""

import logging
import os
import threading
import uuid
from multiprocessing import get_context
from typing import Any

from django.db import connections
from django.dispatch import receiver
from django_q.cluster import Sentinel
from django_q.conf import Conf
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute

from compaction.worker.broker import LaneBroker
from compaction.worker.processes import (
    Process,
    list_descendants,
    set_process_name,
    wait_until_dead,
)
from compaction.worker.run_locks import run_locks
from compaction.worker.watchdog import BUSY_WORKER_NAME

fork_context = get_context("fork")
FREE_WORKER_NAME = "jobs-free"
KILL_SECONDS = 10.0  # the kernel needs a moment for the processes below the sentinel


class Cluster:
    """One sentinel and all processes below it."""

    def __init__(self, broker: LaneBroker, *, workers: int) -> None:
        Conf.WORKERS = workers
        # django-q2 logs a line for every canary, which would hide what matters.
        logging.getLogger("django-q").setLevel(logging.WARNING)
        # A connection that two processes share after a fork breaks in both of them.
        connections.close_all()
        self._stop_event = fork_context.Event()
        self._sentinel = fork_context.Process(
            target=Sentinel, args=(self._stop_event, fork_context.Event(), uuid.uuid4(), broker)
        )
        self._sentinel.start()

    def is_alive(self) -> bool:
        """Return True while the sentinel lives. Without it nothing replaces a dead worker."""
        return self._sentinel.is_alive()

    def list_processes(self) -> list[Process]:
        """Return all processes of the cluster, the sentinel included."""
        return list_descendants(os.getpid())

    def stop(self, *, grace: float) -> None:
        """Let running tasks end within `grace` seconds, then kill all processes."""
        # set() waits for whoever sleeps on the event, and without limit if that process was killed
        # or stopped in its sleep. Another thread does it, so that this one goes on.
        threading.Thread(target=self._stop_event.set, daemon=True).start()
        self._sentinel.join(grace)
        self.kill()

    def kill(self) -> None:
        """Kill the sentinel; the kernel kills the processes below it (see processes.py).

        Whoever looks at their locked files afterwards must find them without a lock.
        """
        pids = [process.pid for process in self.list_processes()]
        self._sentinel.kill()
        self._sentinel.join()
        wait_until_dead(pids, seconds=KILL_SECONDS)


@receiver(post_spawn)
@receiver(post_execute_in_worker)
def _mark_worker_free(**_: Any) -> None:
    set_process_name(FREE_WORKER_NAME)
    run_locks.release_lock()


@receiver(pre_execute)
def _mark_worker_busy(**_: Any) -> None:
    set_process_name(BUSY_WORKER_NAME)
