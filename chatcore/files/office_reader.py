"""Read one office file in a process of its own, under limits of time and memory.

`office.py` runs this file as a program: bytes on the standard input, text on the standard output.
The exit code is another than 0 when the file cannot be read: a damaged one can raise anything.
"""

import io
import logging
import resource
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

MAX_CHARS = 10_000_000
MAX_UNPACKED_BYTES = 200_000_000
PART_END = "\f"
CPU_SECONDS = 20
MEMORY_BYTES = 1 << 30


def main() -> int:
    """Read the file and write the text of each part at once."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    data = io.BytesIO(sys.stdin.buffer.read())
    parts = {part.filename: part.file_size for part in zipfile.ZipFile(data).infolist()}
    if sum(parts.values()) > MAX_UNPACKED_BYTES:
        return 2
    read = next(read for part, read in READERS.items() if part in parts)
    _write(read(data))
    return 0


def _read_document(data: io.BytesIO) -> Iterator[str]:
    import mammoth

    # Pictures would be as long as books, and no model reads them in this form.
    no_images = mammoth.images.img_element(lambda image: {})
    yield mammoth.convert_to_markdown(data, convert_image=no_images).value.replace("![]()", "")


def _read_workbook(data: io.BytesIO) -> Iterator[str]:
    import openpyxl

    workbook = openpyxl.load_workbook(data, read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        yield f"# {sheet.title}\n\n"
        for row in sheet.iter_rows(values_only=True):
            if any(value is not None for value in row):
                yield _join_row("" if value is None else value for value in row)
        yield PART_END + "\n"


def _read_presentation(data: io.BytesIO) -> Iterator[str]:
    import pptx

    for number, slide in enumerate(pptx.Presentation(data).slides, 1):
        yield f"# Slide {number}\n\n"
        for shape in slide.shapes:
            yield from _read_shape(shape)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame:
            yield f"Notes: {slide.notes_slide.notes_text_frame.text}\n"
        yield PART_END + "\n"


def _read_shape(shape: Any) -> Iterator[str]:
    for part in getattr(shape, "shapes", ()):  # a group
        yield from _read_shape(part)
    if shape.has_text_frame and shape.text_frame.text.strip():
        yield f"{shape.text_frame.text}\n\n"
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield _join_row(cell.text for cell in row.cells)


def _join_row(values: Iterable[object]) -> str:
    cells = (" ".join(str(value).split()).replace("|", "\\|") for value in values)
    return f"| {' | '.join(cells)} |\n"


def _write(pieces: Iterable[str]) -> None:
    total_chars = 0
    for piece in pieces:
        sys.stdout.buffer.write(piece[: MAX_CHARS - total_chars].encode(errors="ignore"))
        total_chars += len(piece)
        if total_chars >= MAX_CHARS:
            sys.stdout.buffer.write(b"\n[The rest was not read.]")
            break
    sys.stdout.buffer.flush()


READERS = {
    "word/document.xml": _read_document,
    "xl/workbook.xml": _read_workbook,
    "ppt/presentation.xml": _read_presentation,
}

if __name__ == "__main__":
    sys.exit(main())
