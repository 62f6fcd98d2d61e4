"""Read the process table, name our processes in it, and let none of them outlive its parent.

For django-q2's sake: when its sentinel is killed, its workers would go on without it.
"""

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
POLL_SECONDS = 0.01
STATE_STOPPED, STATE_ZOMBIE = "T", "Z"

_libc = ctypes.CDLL(None)
_forking_pid = os.getpid()


class Process(NamedTuple):
    """One line of the process table; `state` is a letter: R, S, D, T (stopped), Z (not reaped)."""

    pid: int
    parent: int
    name: str
    state: str


def list_descendants(pid: int) -> list[Process]:
    """Return all processes below `pid`, parents first; none where the system has no /proc."""
    entries = [_parse_process(entry) for entry in PROC.glob("[0-9]*")]
    table = [process for process in entries if process is not None]
    members: list[Process] = []
    parents = {pid}
    while parents:
        children = [process for process in table if process.parent in parents]
        members += children
        parents = {child.pid for child in children}
    return members


def wait_until_dead(pids: Iterable[int], *, seconds: float) -> None:
    """Wait until none of these processes lives, at most so many seconds."""
    deadline = time.monotonic() + seconds
    living_pids = set(pids)
    while living_pids and time.monotonic() < deadline:
        living_pids = {pid for pid in living_pids if _is_living(pid)}
        time.sleep(POLL_SECONDS)


def _is_living(pid: int) -> bool:
    process = _parse_process(PROC / str(pid))
    if process is None:
        return False
    if process.state != STATE_ZOMBIE:
        return True
    # Its first thread is gone; while another one still ends, its files are open, with their locks.
    with suppress(OSError):
        return sum(1 for _ in (PROC / str(pid) / "task").iterdir()) > 1
    return False


def _parse_process(entry: Path) -> Process | None:
    with suppress(OSError):
        head, _, tail = (entry / "stat").read_text(errors="replace").rpartition(")")
        state, parent = tail.split()[:2]
        return Process(
            pid=int(entry.name), parent=int(parent), name=head.partition("(")[2], state=state
        )
    return None


def set_process_name(name: str) -> None:
    """Show this process under `name` (at most 15 characters) in ps, where the system can."""
    with suppress(OSError):
        (PROC / "self/comm").write_text(name)


def die_with_parent() -> None:
    """Let each process that is forked from now on be killed when its parent dies (Linux only).

    So even `kill -9` leaves no orphans. The processes below them inherit this.
    """
    if hasattr(_libc, "prctl"):
        os.register_at_fork(
            before=_remember_forking_pid, after_in_child=_request_parent_death_signal
        )


def _remember_forking_pid() -> None:
    global _forking_pid
    _forking_pid = os.getpid()


def _request_parent_death_signal() -> None:
    _libc.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != _forking_pid:
        # The parent died before the request, so no signal will come.
        os.kill(os.getpid(), signal.SIGKILL)
