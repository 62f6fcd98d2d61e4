"""Note which runs this machine's workers execute, in one locked file each.

A file without a lock is a run that no worker executes any more. It is given back within seconds,
not only when its lease ends.
"""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from chatcore.base.file_locks import create_locked_file


class RunLocks:
    """The locked files in one folder, named `<run id>.<process id>`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current_lock: tuple[int, Path] | None = None

    def acquire_lock(self, run_id: str) -> None:
        """Note that this process executes the run from now on, and no other one."""
        self.release_lock()
        lock_path = self.folder / f"{run_id}.{os.getpid()}"
        self._current_lock = (create_locked_file(lock_path), lock_path)

    def release_lock(self) -> None:
        """Note that this process executes no run."""
        if self._current_lock:
            descriptor, path = self._current_lock
            self._current_lock = None
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def count_locks(self) -> int:
        """Return how many runs this machine's workers execute."""
        return sum(1 for _ in self.folder.glob("[!.]*"))

    def collect_abandoned_runs(self) -> list[str]:
        """Return the ids of runs whose workers are dead, each of them once."""
        return [
            path.name.partition(".")[0]
            for path in self.folder.glob("[!.]*")
            if _remove_if_unlocked(path)
        ]


def _remove_if_unlocked(path: Path) -> bool:
    with suppress(BlockingIOError, FileNotFoundError), path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False


run_locks = RunLocks(Path(getattr(settings, "DATA_DIR", tempfile.gettempdir()), "in-hand"))
