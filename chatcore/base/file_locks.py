"""Locks of files, which the processes of one machine hold.

The kernel frees the lock of a process that dies, however it dies.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file or a folder during a block; wait for another holder first.

    A file is made if it is missing, and stays for the next one.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def create_locked_file(path: Path) -> int:
    """Make a file that is locked until its descriptor, which is returned, is closed.

    It gets its name when it is locked already: a moment in which others could see it without a lock
    would look like a death. Until then its name begins with a dot.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary_path = tempfile.mkstemp(prefix=".", dir=path.parent)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    Path(temporary_path).rename(path)
    return descriptor


def is_free(path: Path) -> bool:
    """Return whether a file or a folder exists and is not locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
