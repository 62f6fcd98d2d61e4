"""How far the embedded model is on its way, for a page that waits for it; read from the files that its process writes."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal

from django.conf import settings

from chatcore.local_model.weights import KNOWN, Weights

FRESH_SECONDS = 90.0  # a download that wrote nothing for so long is not going on


@dataclass(frozen=True, kw_only=True)
class State:
    """`fetching` with a `percent`, `there` when the weights are on this machine, else `absent`."""

    kind: Literal["fetching", "there", "absent"]
    name: str
    percent: int = 0


def state() -> State:
    """The embedded model's weights, as they are now."""
    wanted: dict[str, Any] = settings.LOCAL_MODEL
    weights = KNOWN[wanted["SIZE"]]
    if (
        Path(wanted["PATH"]).is_file()
        if wanted["PATH"]
        else any((folder / weights.file).is_file() for folder in wanted["FOLDERS"])
    ):
        return State(kind="there", name=weights.name)
    done = _fetched(weights, wanted["FOLDERS"][0])
    if done is None:
        return State(kind="absent", name=weights.name)
    return State(kind="fetching", name=weights.name, percent=min(99, done * 100 // weights.size))


def _fetched(weights: Weights, folder: Path) -> int | None:
    """Bytes that a download has brought; None when none is going on."""
    target = folder / weights.file
    whole = [_seen([target.with_name(f"{target.name}.{end}")]) for end in ("partial", "joined")]
    size, newest = max(*whole, _seen(target.with_name(f"{target.name}.parts").rglob("*")))
    return size if time.time() - newest < FRESH_SECONDS else None


def _seen(paths: Iterable[Path]) -> tuple[int, float]:
    """Bytes in these files, and when one was last written to; pip makes and removes some meanwhile."""
    size, newest = 0, 0.0
    for path in paths:
        with suppress(FileNotFoundError):
            found = path.stat()
            size += found.st_size if S_ISREG(found.st_mode) else 0
            newest = max(newest, found.st_mtime)
    return size, newest
