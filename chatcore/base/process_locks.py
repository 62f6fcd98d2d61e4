"""A locked file of each process that answers, by which others of the machine see that it lives.

The kernel frees the lock of a process that dies, however it dies. Files are named by the start of
the machine too: a lock on a volume of the network may say nothing of another machine's processes.
"""

import fcntl
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

from django.conf import settings

logger = logging.getLogger(__name__)

_lock = threading.Lock()
_own: dict[int, UUID | None] = {}  # by the number of the process, as a fork has none yet


def get_own_process() -> UUID | None:
    """Return the name of this process, whose file is locked from now on; None if it cannot be."""
    with _lock:
        if os.getpid() not in _own:
            _own[os.getpid()] = _lock_file()
        return _own[os.getpid()]


def list_dead_processes() -> list[UUID]:
    """Return the processes of this machine that are dead and not yet forgotten."""
    paths = _get_folder().glob(f"{_name_machine()}.*")
    return [UUID(path.suffix[1:]) for path in paths if _is_free(path)]


def forget_processes(processes: Collection[UUID]) -> None:
    """Remove the files of dead processes, which have left nothing any more."""
    for process in processes:
        _get_path(process).unlink(missing_ok=True)


def _lock_file() -> UUID | None:
    process = uuid4()
    try:
        _get_folder().mkdir(parents=True, exist_ok=True)
        # The file gets its name when it is locked already: a moment in which others could see it
        # without a lock would look like a death. It stays open, and so locked, to the end.
        descriptor, temporary_path = tempfile.mkstemp(prefix=".", dir=_get_folder())
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        Path(temporary_path).rename(_get_path(process))
    except OSError as error:
        logger.warning("no file of this process is locked: %s", error)
        return None
    return process


def _is_free(path: Path) -> bool:
    with suppress(OSError), path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _get_folder() -> Path:
    return Path(getattr(settings, "DATA_DIR", tempfile.gettempdir())) / "processes"


def _get_path(process: UUID) -> Path:
    return _get_folder() / f"{_name_machine()}.{process.hex}"


def _name_machine() -> str:
    """Return a name of this start of the machine; of the machine where the system has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return socket.gethostname().replace(".", "-")
