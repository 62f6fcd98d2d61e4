"""A locked file of each process that answers, by which others of the machine see that it lives.

Files are named by the start of
the machine too: a lock on a volume of the network may say nothing of another machine's processes.
"""

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

from chatcore.base.file_locks import create_locked_file, is_free

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
    return [UUID(path.suffix[1:]) for path in paths if is_free(path)]


def forget_processes(processes: Collection[UUID]) -> None:
    """Remove the files of dead processes, which have left nothing any more."""
    for process in processes:
        _get_path(process).unlink(missing_ok=True)


def _lock_file() -> UUID | None:
    process = uuid4()
    try:
        create_locked_file(_get_path(process))  # it stays open, and so locked, to the end
    except OSError as error:
        logger.warning("no file of this process is locked: %s", error)
        return None
    return process


def _get_folder() -> Path:
    return Path(getattr(settings, "DATA_DIR", tempfile.gettempdir())) / "processes"


def _get_path(process: UUID) -> Path:
    return _get_folder() / f"{_name_machine()}.{process.hex}"


def _name_machine() -> str:
    """Return a name of this start of the machine; of the machine where the system has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return socket.gethostname().replace(".", "-")
