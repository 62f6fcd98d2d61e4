"""Read what a stranger has sent in a child process, so that only that one crashes or runs for ever.

Reading may use all memory for a hostile or damaged file. At most two readers run at a time, and one
for each owner: a user who uploads many files waits for the one before, and leaves the other reader
to others.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

from chatcore.base.slots import PersonLocks

SECONDS = 20.0
READER_SLOTS = threading.BoundedSemaphore(2)
_owner_locks = PersonLocks()


def run_reader(script: Path, data: bytes, *, owner: object) -> tuple[bytes, int]:
    """Return what a program writes that gets the bytes as its input, and its exit code.

    Blocks for at most SECONDS once a reader is free. A program that takes longer ends then, and its
    exit code is 0.
    """
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
