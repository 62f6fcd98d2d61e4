"""Extract the text of a PDF file, in a child process. Its pages are divided by form feeds."""

from pathlib import Path

from chatcore.base.extras import describe_missing, has_extra
from chatcore.files.child_process import run_reader

_READER = Path(__file__).with_name("pdf_reader.py")
_LOCKED = 3  # the exit code


class UnreadablePdf(Exception):
    """A PDF file that cannot be read because it is damaged or needs a password."""


def is_pdf(data: bytes) -> bool:
    """Return True if the first kilobyte contains the mark of a PDF file."""
    return b"%PDF-" in data[:1024]


def extract_text(data: bytes, *, owner: object = None) -> str:
    """Return the text of the pages.

    `owner` is whoever sent the file. A file that takes longer than a reader may, or has too many
    pages, is read only up to there. Raises UnreadablePdf.
    """
    if not has_extra("documents"):
        raise UnreadablePdf(describe_missing("documents"))
    output, exit_code = run_reader(_READER, data, owner=owner)
    if exit_code == _LOCKED:
        raise UnreadablePdf("This PDF is locked with a password.")
    if exit_code and not output:
        raise UnreadablePdf("This PDF cannot be read.")
    return output.decode(errors="ignore").replace("\x00", "").strip()
