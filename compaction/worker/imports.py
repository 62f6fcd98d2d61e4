"""Run waiting imports in one process beside the cluster.

It is no task of django-q2, whose workers are counted: a long import would look like a cluster that
hangs. The row of an import says how far it is, so the process may die at any moment.
"""

import os
import signal
from typing import Any

from django.db import connections

from chatcore.transfer import import_jobs

STOP_SECONDS = 3.0
NICENESS = 10  # answers and summaries come first


class ImportProcess:
    """The process, while there is something to import."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._process: Any = None

    def start_if_due(self) -> None:
        """Start the process if an import waits and none is running."""
        if self._process is not None and self._process.is_alive():
            return
        if import_jobs.has_due_imports():
            connections.close_all()
            self._process = self._context.Process(target=run_imports)
            self._process.start()

    def stop(self) -> None:
        """End the process; another goes on where it stopped."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(STOP_SECONDS)
            self._process.kill()
            self._process.join()
            self._process = None


def run_imports() -> None:
    """Import until nothing waits. The signals of the process above are not this one's."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    connections.close_all()
    import_jobs.run_due_imports()
