"""Add up what the processes of a machine have counted.

Several web processes share a port, so a scrape reaches any of them, and a worker has no port. Each
process therefore writes its counts to a file of its own every few seconds, and whoever is asked
adds the files up. prometheus_client has a way of its own for this, which maps files into memory: on
a full disk the kernel would kill the process that counts.

A process holds the lock on a second file as long as it lives. The counts of those that have died
are added to one file, so that sums never fall and files do not pile up.
"""

import contextlib
import fcntl
import importlib
import json
import logging
import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from django.conf import settings

from chatcore.base.file_locks import hold_lock, is_free
from chatcore.contrib.metrics import definitions

logger = logging.getLogger(__name__)

WRITE_SECONDS = 5.0
DEAD_NAME = "ended.json"
LabelPairs = tuple[tuple[str, str], ...]


@dataclass
class Family:
    """The samples of one metric; those with the same name and labels are added up."""

    kind: str
    text: str
    samples: dict[tuple[str, LabelPairs], float] = field(default_factory=dict)


Families = dict[str, Family]


def collect_families() -> Families:
    """Return what this process has counted."""
    families: Families = {}
    for metric in definitions.registry.collect():
        family = families[metric.name] = Family(metric.type, metric.documentation)
        for sample in metric.samples:
            if not sample.name.endswith("_created"):
                key = (sample.name, tuple(sorted(sample.labels.items())))
                family.samples[key] = sample.value
    return families


def add_families(total: Families, addition: Families) -> None:
    """Add the samples of `addition` to those of `total`."""
    for name, family in addition.items():
        sums = total.setdefault(name, Family(family.kind, family.text)).samples
        for key, value in family.samples.items():
            sums[key] = sums.get(key, 0.0) + value


class Snapshots:
    """The counts of this process in its file, and those of all processes of the machine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock_file: IO[str] | None = None
        self._path: Path | None = None
        self._timer: threading.Timer | None = None
        # A fork gets a file of its own. It begins with empty counts, because its parent goes on.
        os.register_at_fork(after_in_child=self._forget)

    def note_change(self) -> None:
        """Have the counts written soon, by another thread."""
        if self._timer is None:
            timer = self._timer = threading.Timer(WRITE_SECONDS, self.write)
            timer.daemon = True
            with contextlib.suppress(RuntimeError):  # the interpreter is ending
                timer.start()

    def write(self) -> None:
        """Write the counts now. A disk that takes nothing is no reason to fail."""
        self._timer = None
        try:
            with self._lock:
                path = self._open()
                _write_families(path, collect_families())
        except OSError as error:
            logger.debug("the metrics could not be written: %s", error)

    def sum_up(self, *, with_own: bool = True) -> Families:
        """Return the counts of all processes of this machine, dead ones included.

        `with_own` is False where this process counts nothing and forks others that do: no lock of
        the registry may be held at a fork.
        """
        total = collect_families() if with_own else {}
        with self._lock, contextlib.suppress(OSError), _hold_folder():
            own_path = self._open()
            _add_up_dead_processes(own_path)
            for path in _folder().glob("*.json"):
                if path != own_path:
                    add_families(total, _read_families(path))
        return total

    def _open(self) -> Path:
        """Return the path of this process's file; its lock is held from the first call on."""
        if self._path is None:
            _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
            path = _folder() / f"{os.getpid()}-{secrets.token_hex(4)}.json"
            self._lock_file = path.with_suffix(".lock").open("w")
            fcntl.flock(self._lock_file, fcntl.LOCK_EX)
            self._path = path
        return self._path

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._timer = None
        if self._lock_file:
            # Closes the child's copy only: the parent's lock stays.
            self._lock_file.close()
        self._lock_file = self._path = None
        # New metrics in a new registry: another thread may have held a lock of the old ones.
        importlib.reload(definitions)


def _folder() -> Path:
    folder: Path = settings.METRICS_DIR
    return folder


@contextlib.contextmanager
def _hold_folder() -> Iterator[None]:
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_lock(_folder() / "folder.lock"):
        yield


def _add_up_dead_processes(own_path: Path) -> None:
    """Add the counts of processes that have ended to one file, and delete theirs."""
    dead_path = _folder() / DEAD_NAME
    for lock_path in _folder().glob("*-*.lock"):
        path = lock_path.with_suffix(".json")
        if path == own_path or not is_free(lock_path):
            continue
        if path.exists():
            total = _read_families(dead_path)
            counts = _read_families(path)
            # What a process has open, nobody has open when it is dead.
            add_families(
                total, {name: counts[name] for name in counts if counts[name].kind != "gauge"}
            )
            _write_families(dead_path, total)
            path.unlink()
        lock_path.unlink()


def _write_families(path: Path, families: Families) -> None:
    rows = [
        [name, family.kind, family.text, [[*key, value] for key, value in family.samples.items()]]
        for name, family in families.items()
    ]
    new_path = path.with_suffix(".new")
    new_path.write_text(json.dumps(rows))
    new_path.replace(path)


def _read_families(path: Path) -> Families:
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {
        name: Family(kind, text, {_read_key(sample): sample[2] for sample in samples})
        for name, kind, text, samples in rows
    }


def _read_key(sample: list[Any]) -> tuple[str, LabelPairs]:
    return sample[0], tuple((name, value) for name, value in sample[1])


snapshots = Snapshots()
