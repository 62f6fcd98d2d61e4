"""Extract the text of DOCX, XLSX and PPTX files, in a child process.

Sheets and slides are divided by form feeds, as the pages of a PDF file are.
"""

from pathlib import Path

from chatcore.files.child_process import FAILED, read_text

_READER = Path(__file__).with_name("office_reader.py")
_OPEN_XML = "application/vnd.openxmlformats-officedocument"
# By the part that each kind of file has.
MEDIA_TYPES = {
    "word/document.xml": f"{_OPEN_XML}.wordprocessingml.document",
    "xl/workbook.xml": f"{_OPEN_XML}.spreadsheetml.sheet",
    "ppt/presentation.xml": f"{_OPEN_XML}.presentationml.presentation",
}


def find_media_type(data: bytes) -> str:
    """Return the media type of an office file; empty for what is none.

    Nothing is unpacked or listed here, because a stranger's archive may have any number of parts:
    the reader's process does that. The names of an archive stand at its end, behind those of the
    archives inside it.
    """
    if not data.startswith(b"PK\x03\x04"):
        return ""
    places = {kind: data.rfind(part.encode()) for part, kind in MEDIA_TYPES.items()}
    kind = max(places, key=places.__getitem__)
    return kind if places[kind] >= 0 else ""


def extract_text(data: bytes, *, owner: object = None) -> str:
    """Return the text, as Markdown where that says more. Raises UnreadableFile."""
    complaints = {FAILED: "This document cannot be read."}
    return read_text(_READER, data, owner=owner, complaints=complaints)
