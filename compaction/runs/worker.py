"""Keep one cluster of django-q2 at work: start it, and replace it when it dies or hangs.

django-q2 replaces a process of its own that dies. It does not notice one that is stopped, nor that
no worker receives messages any more because a killed process held the lock of a queue. This
process executes no task itself, so it can be trusted to see that, and to sweep for lost work.
"""

import ctypes
import faulthandler
import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkContext
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Generic, ParamSpec, TypeVar
from uuid import UUID

import psutil
from django.core.management import call_command
from django.db import close_old_connections, connections
from django_q.conf import Conf

from chatcore.base.databases.outages import find_outage
from chatcore.extension import get_extensions
from chatcore.models import ServingProcess
from chatcore.serving.processes import record_process, remove_process
from chatcore.turns.lifecycle import RecoveryChore
from compaction.runs import engine, leases, retention
from compaction.runs.run_locks import run_locks
from compaction.runs.tasks import requeue_run, wake_workers

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# All in seconds.
TICK_INTERVAL = 0.2  # how late a signal, or the end of the cluster, may be noticed
CHECK_INTERVAL = 1.0
LOOK_INTERVAL = 10.0  # reading the process table costs milliseconds
SWEEP_INTERVAL = 15.0
PRUNE_INTERVAL = 3600.0
PRUNE_SECONDS = 1.0  # at a time: the cluster is not watched meanwhile
LOG_INTERVAL = 60.0
PATIENCE = 30.0  # until a run that a free worker could claim shows that the cluster hangs
SETTLE_SECONDS = 0.5  # until the end of a cluster is seen, which took its workers with it
STOP_SECONDS = 8.0  # for running tasks when the worker is asked to stop
KILL_SECONDS = 10.0  # until the kernel has ended all processes
STEADY_SECONDS = 60.0  # a cluster that worked for so long was no failure
SILENCE_SECONDS = 150.0  # longer than a database out of reach keeps this process waiting
MAX_FAILED_CLUSTERS = 5  # in a row
MAX_RESTART_DELAY = 3

STUCK_STATES = (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>
fork_context = get_context("fork")

JOB_STOP_SECONDS = 3.0  # for the process of jobs
NICENESS = 10  # answers and summaries come first


class ClusterKeeper:
    """The process above the cluster. Signal handlers call `request_stop`; all else is in `run`."""

    def __init__(self, *, workers: int, patience: float) -> None:
        self.workers = workers
        self.patience = patience
        self._stop_requested = False
        self._jobs = JobProcess(fork_context)
        self._next_prune = 0.0
        self._was_reached = True
        self._waiting_run: UUID | None = None  # the one whose turn it was when last looked at
        self._waiting_since = 0.0

    def request_stop(self, *_: object) -> None:
        """Ask `run` to return. This runs inside signal handlers, so it only sets a flag."""
        self._stop_requested = True

    def run(self) -> int:
        """Work until asked to stop. Return the exit code: 1 if one cluster after another failed."""
        let_children_die_with_parents()
        failed_clusters = 0
        while not self._stop_requested and failed_clusters < MAX_FAILED_CLUSTERS:
            time.sleep(min(failed_clusters, MAX_RESTART_DELAY))
            start_time = time.monotonic()
            self._run_cluster()
            is_steady = time.monotonic() - start_time >= STEADY_SECONDS
            failed_clusters = 0 if is_steady else failed_clusters + 1
        attempt(remove_process)
        return 0 if self._stop_requested else 1

    def _run_cluster(self) -> None:
        # The messages that an earlier cluster took are locked for half an hour.
        attempt(engine.resend_waiting_runs)
        connections.close_all()
        cluster = fork_context.Process(target=run_cluster, args=(self.workers,))
        cluster.start()
        fault = self._watch(cluster)
        if fault is None:
            logger.info("asked to stop: stopping the cluster")
            cluster.terminate()
            cluster.join(STOP_SECONDS)
        else:
            logger.error("the cluster does not work, starting another: %s", fault)
        self._jobs.stop()
        members = list_processes_below()
        with suppress(ProcessLookupError):
            os.killpg(cluster.pid or 0, signal.SIGKILL)
        cluster.kill()  # it may have had no session of its own yet
        cluster.join()
        # The files of dead processes must be unlocked before the locked files are listed.
        psutil.wait_procs(members, timeout=KILL_SECONDS)
        requeue_abandoned_runs(cluster)

    def _watch(self, cluster: BaseProcess) -> str | None:
        """Wait until the cluster fails, and return how; None when asked to stop."""
        self._waiting_run = None
        stuck_since: dict[int, float] = {}
        next_check = next_look = next_sweep = 0.0
        while not self._stop_requested:
            time.sleep(TICK_INTERVAL)
            now = time.monotonic()
            if not cluster.is_alive():
                return "it ended"
            if now >= next_check:
                next_check = now + CHECK_INTERVAL
                # Ends this process if it is not called again in time.
                faulthandler.dump_traceback_later(SILENCE_SECONDS, exit=True)
                requeue_abandoned_runs(cluster)
            if now >= next_look:
                next_look = now + min(LOOK_INTERVAL, self.patience / 3)
                stuck_pids = [p.pid for p in list_processes_below() if is_stuck(p)]
                stuck_since = {pid: stuck_since.get(pid, now) for pid in stuck_pids}
                if any(now - since >= self.patience / 3 for since in stuck_since.values()):
                    return f"process {min(stuck_since)} is stopped, or dead and nobody noticed"
                attempt(self._jobs.start_if_due)
                if attempt(self._check_next_run, now).result:
                    return f"nobody took compaction run {self._waiting_run}"
            # The lease of a run ends while its worker is stopped; that worker is not dead.
            if now >= next_sweep and not stuck_since:
                next_sweep = now + SWEEP_INTERVAL
                self._sweep(now)
        return None

    def _check_next_run(self, now: float) -> bool:
        """Return True if a worker is free, and nobody has claimed the next run for too long.

        Before that, send another message: the first may have been lost.
        """
        run = leases.find_next_run()
        if run is None or run_locks.count_locks() >= self.workers:
            self._waiting_run = None
            return False
        if run.pk != self._waiting_run:
            self._waiting_run, self._waiting_since = run.pk, now
        waited = now - self._waiting_since
        if self.patience / 3 <= waited < self.patience:
            wake_workers(run.pk)
        return waited >= self.patience

    def _sweep(self, now: float) -> None:
        was_reached = self._was_reached
        self._was_reached = attempt(record_process, ServingProcess.Kind.WORKER).is_success
        # While the database was away, living workers could not renew their leases either.
        if was_reached and self._was_reached:
            attempt(resend_lost_runs)
        attempt(recover_turns)
        if now >= self._next_prune and attempt(prune_records).result:
            self._next_prune = now + PRUNE_INTERVAL


def run_cluster(workers: int) -> None:
    """Become django-q2's own command, as the first process of a session of its own.

    Ctrl-C in a terminal does not reach it, and one signal reaches all processes below it.
    """
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    logging.getLogger("django-q").setLevel(logging.WARNING)  # else two lines for each message
    Conf.WORKERS = workers
    call_command("qcluster")


def let_children_die_with_parents() -> None:
    """Let each process that is forked from now on be killed when its parent dies (Linux only).

    So even `kill -9` leaves no orphans. The processes below them inherit this.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "prctl"):
        return
    forking_pid = os.getpid()

    def note_forking_process() -> None:
        nonlocal forking_pid
        forking_pid = os.getpid()

    def request_signal() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != forking_pid:  # it died before the request, so no signal will come
            os.kill(os.getpid(), signal.SIGKILL)

    os.register_at_fork(before=note_forking_process, after_in_child=request_signal)


def list_processes_below() -> list[psutil.Process]:
    """Return all processes below this one."""
    return psutil.Process().children(recursive=True)


def is_stuck(process: psutil.Process) -> bool:
    """Return True if a process is stopped, or dead without having been noticed by its parent."""
    with suppress(psutil.NoSuchProcess):
        return process.status() in STUCK_STATES
    return False


def requeue_abandoned_runs(cluster: BaseProcess) -> None:
    """Send the runs of this machine's dead workers again, without waiting for their leases.

    Those that ended with their whole cluster are innocent: no death is counted.
    """
    for run_id in run_locks.collect_abandoned_runs():
        cluster.join(SETTLE_SECONDS)
        logger.warning("a worker died while it worked on compaction run %s", run_id)
        attempt(requeue_run, run_id, is_innocent=not has_sentinel(cluster))


def has_sentinel(cluster: BaseProcess) -> bool:
    """Return True while the process between the cluster and its workers lives.

    Its death takes the workers with it before the cluster has noticed, on a busy machine long
    before.
    """
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(cluster.pid).children()
        return any(child.status() != psutil.STATUS_ZOMBIE for child in children)
    return False


def resend_lost_runs() -> None:
    """Send lost runs again."""
    if run_count := engine.resend_lost_runs():
        logger.warning("sent %s lost compaction runs again", run_count)


_recovery = RecoveryChore()


def recover_turns() -> None:
    """Close the turns of processes that died."""
    _recovery.recover()


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

    Whatever calls this does so again a moment later, so no error may end the process.
    """
    close_old_connections()
    try:
        return Attempt(is_success=True, result=function(*args, **kwargs))
    except Exception as error:
        name = getattr(function, "__name__", str(function))
        if time.monotonic() >= _next_logs.get(name, 0.0):
            _next_logs[name] = time.monotonic() + LOG_INTERVAL
            logger.error(
                "the worker could not %s: %s", name, error, exc_info=not find_outage(error)
            )
        return Attempt(is_success=False)


_next_logs: dict[str, float] = {}


class JobProcess:
    """The process beside the cluster that runs jobs of apps that last, as imports do.

    They are no tasks of django-q2, whose workers are counted: a long one would look like a cluster
    that hangs. The row of a job says how far it is, so the process may die at any moment.
    """

    def __init__(self, context: ForkContext) -> None:
        self._context = context
        self._process: BaseProcess | None = None

    def start_if_due(self) -> None:
        """Start the process if a job waits and none is running."""
        if self._process is not None and self._process.is_alive():
            return
        if any(module.has_due_jobs() for module in load_modules()):
            connections.close_all()
            self._process = self._context.Process(target=run_jobs)
            self._process.start()

    def stop(self) -> None:
        """End the process; another goes on where it stopped."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(JOB_STOP_SECONDS)
            self._process.kill()
            self._process.join()
            self._process = None


def load_modules() -> list[ModuleType]:
    """Return the modules of installed apps that have jobs."""
    return [import_module(path) for each in get_extensions() for path in each.worker_jobs]


def run_jobs() -> None:
    """Work until nothing waits. The signals of the process above are not this one's."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    connections.close_all()
    for module in load_modules():
        module.run_due_jobs()
