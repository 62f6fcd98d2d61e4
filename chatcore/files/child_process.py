"""Read what a stranger has sent in a child process, so that only that one crashes or runs for ever.

Reading may use all memory for a hostile or damaged file. At most two readers run at a time, and one
for each owner: a user who uploads many files waits for the one before, and leaves the other reader
to others.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from chatcore.base.extras import describe_missing, has_extra
from chatcore.base.slots import PersonLocks

SECONDS = 20.0
READER_SLOTS = threading.BoundedSemaphore(2)
FAILED = 1  # the exit code of a reader to which anything happened
_owner_locks = PersonLocks()


class UnreadableFile(Exception):
    """A file that cannot be read: it is damaged or locked, or its reader is not installed."""


def read_text(script: Path, data: bytes, *, owner: object, complaints: Mapping[int, str]) -> str:
    """Return the text that a reader finds in a file of `owner`, as far as it comes in its time.

    Raises UnreadableFile, with the complaint of its exit code; that of FAILED is for all others.
    """
    output, exit_code = run_reader(script, data, owner=owner)
    if exit_code and not output:
        raise UnreadableFile(complaints.get(exit_code, complaints[FAILED]))
    return output.decode(errors="ignore").replace("\x00", "").strip()


def run_reader(script: Path, data: bytes, *, owner: object) -> tuple[bytes, int]:
    """Return what a program writes that gets the bytes as its input, and its exit code.

    Blocks for at most SECONDS once a reader is free. A program that takes longer ends then, and its
    exit code is 0. Raises UnreadableFile where no reader is installed.
    """
    if not has_extra("documents"):
        raise UnreadableFile(describe_missing("documents"))
    # The child process gets nothing else of the environment, because that holds secrets.
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    try:
        with _owner_locks.get(owner), READER_SLOTS:
            process = subprocess.run(  # noqa: S603
                [sys.executable, "-P", str(script)],
                input=data,
                capture_output=True,
                timeout=SECONDS,
                check=False,
                env=environment,
            )  # noqa: RUF100, S603
        return process.stdout, process.returncode
    except subprocess.TimeoutExpired as timeout_error:
        return timeout_error.stdout or b"", 0
