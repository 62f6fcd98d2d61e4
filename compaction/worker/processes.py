"""What the operating system knows of our processes: who descends from whom, what each is doing, and that none outlives its parent."""

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
STATE_STOPPED, STATE_ZOMBIE = "T", "Z"

_libc = ctypes.CDLL(None)
_forking_pid = os.getpid()


class Process(NamedTuple):
    """One line of the process table. `state` is the kernel's letter: R, S, D, T (stopped), Z (dead, not buried yet)."""

    pid: int
    parent: int
    name: str
    state: str


def list_descendants(pid: int) -> list[Process]:
    """All processes below `pid`, parents first; empty where the system has no /proc."""
    table = [process for entry in PROC.glob("[0-9]*") if (process := _parse_process(entry))]
    members: list[Process] = []
    parents = {pid}
    while parents:
        children = [process for process in table if process.parent in parents]
        members += children
        parents = {child.pid for child in children}
    return members


def _parse_process(entry: Path) -> Process | None:
    with suppress(OSError):
        head, _, tail = (entry / "stat").read_text(errors="replace").rpartition(")")
        state, parent = tail.split()[:2]
        return Process(
            pid=int(entry.name), parent=int(parent), name=head.partition("(")[2], state=state
        )
    return None


def set_process_name(name: str) -> None:
    """Show this process under `name` (at most 15 characters) in ps; nothing where the system cannot."""
    with suppress(OSError):
        (PROC / "self/comm").write_text(name)


def die_with_parent() -> None:
    """From now on every process forked here, and below, is killed when its parent dies: kill -9 leaves no orphans (Linux)."""
    if hasattr(_libc, "prctl"):
        os.register_at_fork(
            before=_remember_forking_pid, after_in_child=_request_parent_death_signal
        )


def _remember_forking_pid() -> None:
    global _forking_pid
    _forking_pid = os.getpid()


def _request_parent_death_signal() -> None:
    _libc.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != _forking_pid:  # it died before we asked
        os.kill(os.getpid(), signal.SIGKILL)
