"""The text of a PDF, read by a child process that may die of it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

SECONDS = 20.0
_READER = Path(__file__).with_name("pdf_reader.py")
_READER_SLOTS = threading.BoundedSemaphore(
    2
)  # readers at a time: whoever uploads many waits, and nobody else does
_ERROR_MESSAGES = {2: "This PDF cannot be read.", 3: "This PDF is locked with a password."}


class UnreadablePdf(Exception):
    """A PDF that gives no text because it is broken or locked."""


def is_pdf(data: bytes) -> bool:
    """By its first kilobyte, where the mark must stand."""
    return b"%PDF-" in data[:1024]


def extract_text(data: bytes) -> str:
    """The pages' text. What takes longer than SECONDS, or has too many pages, is read as far as it went. Raises UnreadablePdf."""
    command = [sys.executable, "-P", str(_READER)]
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}  # and no secret of ours
    try:
        with _READER_SLOTS:
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
