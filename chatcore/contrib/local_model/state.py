"""How much of the embedded model has been downloaded, for the page that waits for it.

It is read from the files that the model's process writes, so the two share no other state.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal

from django.conf import settings

from chatcore.contrib.local_model.weights import WEIGHTS_BY_SIZE, Weights, find_own_file

FRESH_SECONDS = 90.0  # a download that has written nothing for longer has stopped


@dataclass(frozen=True, kw_only=True)
class LocalModelState:
    """The state of the weights: `there`, `fetching` with a `percent`, or `absent`.

    `there` says also that `serve` starts the model. `start` is what `serve` does with it.
    """

    kind: Literal["fetching", "there", "absent"]
    start: str
    name: str = ""
    percent: int = 0


def load_local_model_state() -> LocalModelState:
    """Return the current state of the embedded model's weights."""
    options: dict[str, Any] = settings.LOCAL_MODEL
    start: str = options["START"]
    if start in ("no", "not installed"):
        return LocalModelState(kind="absent", start=start)
    folders = options["FOLDERS"]
    if options["PATH"]:
        file = find_own_file(options["PATH"], folders)
        name = file.stem if file else None
    else:
        candidates = WEIGHTS_BY_SIZE[options["SIZE"]]
        name = next((each.name for each in candidates if _is_there(each, folders)), None)
        for weights in () if name else candidates:
            byte_count = _count_fetched_bytes(weights, folders[0])
            if byte_count is None:
                continue
            # Not 100: when all bytes are there, the checksum is still compared.
            percent = min(99, byte_count * 100 // weights.size)
            return LocalModelState(kind="fetching", start=start, name=weights.name, percent=percent)
    if name and start == "yes":
        return LocalModelState(kind="there", start=start, name=name)
    return LocalModelState(kind="absent", start=start)


def _is_there(weights: Weights, folders: Iterable[Path]) -> bool:
    return any((folder / weights.file_name).is_file() for folder in folders)


def _count_fetched_bytes(weights: Weights, folder: Path) -> int | None:
    """Return the number of bytes that the current download has fetched; None without one."""
    target = folder / weights.file_name
    partial = target.with_name(f"{target.name}.partial")
    joined_file = target.with_name(f"{target.name}.joined")
    parts_folder = target.with_name(f"{target.name}.parts")
    # A download that changes its source leaves one of these behind; the largest counts.
    size, newest_mtime = max(
        _measure_files([partial]),
        _measure_files([joined_file]),
        _measure_files(parts_folder.glob("*.whl")),
    )
    # What pip has not moved to its place yet would be counted twice for a moment.
    newest_mtime = max(newest_mtime, _measure_files(parts_folder.rglob("*"))[1])
    if time.time() - newest_mtime >= FRESH_SECONDS:
        return None
    return size


def _measure_files(paths: Iterable[Path]) -> tuple[int, float]:
    """Return the bytes in these files and the time of the last write, in seconds since 1970."""
    size = 0
    newest_mtime = 0.0
    for path in paths:
        with suppress(FileNotFoundError):  # pip creates and removes files meanwhile
            status = path.stat()
            size += status.st_size if S_ISREG(status.st_mode) else 0
            newest_mtime = max(newest_mtime, status.st_mtime)
    return size, newest_mtime
