"""Which run this machine's workers have in hand: a locked file each. The kernel drops the lock of whoever dies, however it dies."""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path


class Hands:
    """The files lie in one folder; a file that nobody holds locked was dropped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: tuple[int, Path] | None = None

    def take(self, run_id: str) -> None:
        """This process has the run in hand now."""
        self.leave()
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, unlocked = tempfile.mkstemp(prefix=".", dir=self.folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        held = self.folder / f"{run_id}.{os.getpid()}"
        Path(unlocked).rename(held)  # seen by others only once it is locked
        self._held = descriptor, held

    def leave(self) -> None:
        """This process has nothing in hand."""
        if self._held:
            descriptor, path = self._held
            self._held = None
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def dropped(self) -> list[str]:
        """The runs whose holders are dead, whenever they died; told once."""
        return [path.name.partition(".")[0] for path in self.folder.glob("[!.]*") if _pick_up(path)]


def _pick_up(path: Path) -> bool:
    with suppress(BlockingIOError, FileNotFoundError), path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False
