"""Read one PDF file in a process of its own, under limits of time and memory.

`pdf.py` runs this file as a program: bytes on the standard input, text on the standard output. The
exit code is 3 when the PDF needs a password, and another than 0 when it cannot be read: a damaged
one can raise anything.
"""

import io
import logging
import resource
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_PAGES = 1_000
MAX_CHARS = 10_000_000
PAGE_END = "\f"
CPU_SECONDS = 20
MEMORY_BYTES = 1 << 30


def main() -> int:
    """Read the PDF and write the text of each page at once.

    The parent process can then use the first pages even if a later one ends this process.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    import pypdf

    try:
        reader = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
        if reader.is_encrypted and not reader.decrypt(""):
            return 3
        page_count = len(reader.pages)
    except pypdf.errors.DependencyError:  # encrypted in a way that needs a package we do not have
        return 3
    _write_pages(reader, page_count)
    return 0


def _write_pages(reader: "PdfReader", page_count: int) -> None:
    total_chars = 0
    for number in range(page_count):
        if number == MAX_PAGES or total_chars > MAX_CHARS:
            _write_text(f"[Only the first {number:,} of {page_count:,} pages were read.]")
            return
        try:
            text = reader.pages[number].extract_text()
        except Exception:  # noqa: BLE001 - one broken page
            text = ""
        total_chars += len(text)
        _write_text(f"{text.strip()}\n{PAGE_END}\n")


def _write_text(text: str) -> None:
    sys.stdout.buffer.write(text.encode(errors="ignore"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
