"""Extract the text of a PDF file, in a child process. Its pages are divided by form feeds."""

from pathlib import Path

from chatcore.files.child_process import FAILED, read_text

_READER = Path(__file__).with_name("pdf_reader.py")
_LOCKED = 3
_COMPLAINTS = {
    FAILED: "This PDF cannot be read.",
    _LOCKED: "This PDF is locked with a password.",
}


def is_pdf(data: bytes) -> bool:
    """Return True if the first kilobyte contains the mark of a PDF file."""
    return b"%PDF-" in data[:1024]


def extract_text(data: bytes, *, owner: object = None) -> str:
    """Return the text of the pages; of a file with too many, the first. Raises UnreadableFile."""
    return read_text(_READER, data, owner=owner, complaints=_COMPLAINTS)
