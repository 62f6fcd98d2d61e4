"""Extract the text of a PDF file, in a child process.

A hostile or damaged file may use all memory, run for ever or crash its reader; then only the child
process ends.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

from chatcore.slots import PersonLocks

SECONDS = 20.0
_READER = Path(__file__).with_name("pdf_reader.py")
# At most two readers run at a time, and one for each owner: a user who uploads many files waits for
# the one before, and leaves the other reader to others.
_READER_SLOTS = threading.BoundedSemaphore(2)
_owner_locks = PersonLocks()
_ERROR_MESSAGES = {2: "This PDF cannot be read.", 3: "This PDF is locked with a password."}


class UnreadablePdf(Exception):
    """A PDF file that cannot be read because it is damaged or needs a password."""


def is_pdf(data: bytes) -> bool:
    """Return True if the first kilobyte contains the mark of a PDF file."""
    return b"%PDF-" in data[:1024]


def extract_text(data: bytes, *, owner: object = None) -> str:
    """Return the text of the pages. Blocks for at most SECONDS once a reader is free.

    `owner` is whoever sent the file. A file that takes longer, or has too many pages, is read only
    up to there. Raises UnreadablePdf.
    """
    command = [sys.executable, "-P", str(_READER)]
    # The child process gets nothing else of the environment, because that holds secrets.
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    try:
        with _owner_locks.get(owner), _READER_SLOTS:
            process = subprocess.run(  # noqa: S603
                command,
                input=data,
                capture_output=True,
                timeout=SECONDS,
                check=False,
                env=environment,
            )  # noqa: RUF100, S603
        output, exit_code = process.stdout, process.returncode
    except subprocess.TimeoutExpired as timeout_error:
        output, exit_code = timeout_error.stdout or b"", 0
    if exit_code in _ERROR_MESSAGES or (exit_code and not output):
        raise UnreadablePdf(_ERROR_MESSAGES.get(exit_code, _ERROR_MESSAGES[2]))
    return output.decode(errors="ignore").replace("\x00", "").strip()
