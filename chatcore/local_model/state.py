"""How far the embedded model is on its way, for a page that waits for it; read from the files that its process writes."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal

from django.conf import settings

from chatcore.local_model.weights import WEIGHTS_BY_SIZE, Weights

FRESH_SECONDS = 90.0  # a download that wrote nothing for so long is not going on


@dataclass(frozen=True, kw_only=True)
class LocalModelState:
    """`fetching` with a `percent`, `there` when the weights are on this machine, else `absent`."""

    kind: Literal["fetching", "there", "absent"]
    name: str
    percent: int = 0


def load_local_model_state() -> LocalModelState:
    """The embedded model's weights, as they are now."""
    options: dict[str, Any] = settings.LOCAL_MODEL
    weights = WEIGHTS_BY_SIZE[options["SIZE"]]
    if (
        Path(options["PATH"]).is_file()
        if options["PATH"]
        else any((folder / weights.file_name).is_file() for folder in options["FOLDERS"])
    ):
        return LocalModelState(kind="there", name=weights.name)
    byte_count = _count_fetched_bytes(weights, options["FOLDERS"][0])
    if byte_count is None:
        return LocalModelState(kind="absent", name=weights.name)
    return LocalModelState(
        kind="fetching", name=weights.name, percent=min(99, byte_count * 100 // weights.size)
    )


def _count_fetched_bytes(weights: Weights, folder: Path) -> int | None:
    """Bytes that a download has brought; None when none is going on."""
    target = folder / weights.file_name
    file_facts = [
        _measure_files([target.with_name(f"{target.name}.{end}")]) for end in ("partial", "joined")
    ]
    size, newest_mtime = max(
        *file_facts, _measure_files(target.with_name(f"{target.name}.parts").rglob("*"))
    )
    return size if time.time() - newest_mtime < FRESH_SECONDS else None


def _measure_files(paths: Iterable[Path]) -> tuple[int, float]:
    """Bytes in these files, and when one was last written to; pip makes and removes some meanwhile."""
    size, newest_mtime = 0, 0.0
    for path in paths:
        with suppress(FileNotFoundError):
            status = path.stat()
            size += status.st_size if S_ISREG(status.st_mode) else 0
            newest_mtime = max(newest_mtime, status.st_mtime)
    return size, newest_mtime
