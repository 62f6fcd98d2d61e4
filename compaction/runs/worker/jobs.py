"""Run jobs of apps that last, as imports do, in one process beside the cluster.

They are no tasks of django-q2, whose workers are counted: a long one would look like a cluster that
hangs. The row of a job says how far it is, so the process may die at any moment.
"""

import os
import signal
from importlib import import_module
from typing import Any

from django.db import connections

from chatcore.extension import get_extensions

STOP_SECONDS = 3.0
NICENESS = 10  # answers and summaries come first


class JobProcess:
    """The process, while there is something to do."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._process: Any = None

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
            self._process.join(STOP_SECONDS)
            self._process.kill()
            self._process.join()
            self._process = None


def load_modules() -> list[Any]:
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
