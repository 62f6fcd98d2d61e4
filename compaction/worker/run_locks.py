"""Which run this machine's workers have in hand: a locked file each. The kernel drops the lock of whoever dies, however it dies."""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path


class RunLocks:
    """The files lie in one folder; a file that nobody holds locked was dropped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current_lock: tuple[int, Path] | None = None

    def acquire_lock(self, run_id: str) -> None:
        """This process has the run in hand now."""
        self.release_lock()
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, temporary_path = tempfile.mkstemp(prefix=".", dir=self.folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        lock_path = self.folder / f"{run_id}.{os.getpid()}"
        Path(temporary_path).rename(lock_path)  # seen by others only once it is locked
        self._current_lock = descriptor, lock_path

    def release_lock(self) -> None:
        """This process has nothing in hand."""
        if self._current_lock:
            descriptor, path = self._current_lock
            self._current_lock = None
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def collect_abandoned_runs(self) -> list[str]:
        """The runs whose holders are dead, whenever they died; told once."""
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
