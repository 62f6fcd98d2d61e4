"""Office files: their text is read, and what is no such file or damaged is refused."""

import io
import tracemalloc
import zipfile

import openpyxl
import pptx
import pytest
from pptx.util import Inches

from chatcore.files.intake import FileRejected, inspect_file

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def build_document(body: str) -> bytes:
    """Return a DOCX file with this body."""
    relations = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{relations}/content-types">'
        f'<Override PartName="/word/document.xml" ContentType="{kind}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{relations}/relationships"><Relationship Id="a"'
        f' Type="{office}" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


def build_paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_a_document_is_read_with_its_words() -> None:
    document = build_document(
        build_paragraph("The deposit is 1,250 euros") + build_paragraph("漢字")
    )
    file = inspect_file(name="lease.docx", data=document)
    assert file.media_type.endswith("wordprocessingml.document")
    assert file.text == "The deposit is 1,250 euros\n\n漢字"
    assert file.data == document


def test_a_workbook_is_read_sheet_by_sheet_as_tables() -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet
    sheet.title = "Costs"
    sheet.append(["what", "euros"])
    sheet.append(["ice | drinks", 25.5])
    workbook.create_sheet("Empty")
    data = io.BytesIO()
    workbook.save(data)
    file = inspect_file(name="costs.xlsx", data=data.getvalue())
    rows = "# Costs\n\n| what | euros |\n| ice \\| drinks | 25.5 |\n\f\n# Empty"
    assert file.text.startswith(rows)


def test_slides_are_read_with_tables_and_notes() -> None:
    talk = pptx.Presentation()
    slide = talk.slides.add_slide(talk.slide_layouts[5])
    slide.shapes.title.text = "Tides"
    table = slide.shapes.add_table(1, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "high", "9:05"
    slide.notes_slide.notes_text_frame.text = "Say it slowly."
    data = io.BytesIO()
    talk.save(data)
    file = inspect_file(name="talk.pptx", data=data.getvalue())
    assert file.text == "# Slide 1\n\nTides\n\n| high | 9:05 |\nNotes: Say it slowly."


@pytest.mark.parametrize(
    "data",
    [
        build_document("<w:p>")[:-200],
        build_document("<w:p><not closed"),
        build_document('<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;'),
    ],
    ids=["cut", "broken", "entity"],
)
def test_a_damaged_one_is_refused(data: bytes) -> None:
    with pytest.raises(FileRejected, match=r"cannot be read|something else"):
        inspect_file(name="a.docx", data=data)


@pytest.mark.slow
def test_one_that_swells_when_it_is_unpacked_is_refused() -> None:
    bomb = build_document(build_paragraph("a" * 200_000_000))
    assert len(bomb) < 1_000_000
    with pytest.raises(FileRejected, match="cannot be read"):
        inspect_file(name="a.docx", data=bomb)


def test_an_archive_is_listed_in_no_process_but_the_reader() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
        for number in range(10_000):
            archive.writestr(f"{number}/", "")
    data = file.getvalue()
    tracemalloc.start()
    with pytest.raises(FileRejected, match="cannot be read"):
        inspect_file(name="a.docx", data=data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\xff\x00\x00\x00"),
        (b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x00\x08"),
    ],
    ids=["a version of the future", "a name that is no text"],
)
def test_an_odd_archive_is_refused(old: bytes, new: bytes) -> None:
    odd = build_document(build_paragraph("Hello")).replace(old, new)
    odd = odd.replace(b"_rels/.rels", b"_rels/\xff\xfe\xfd\xfc\xfb")
    with pytest.raises(FileRejected, match="cannot be read"):
        inspect_file(name="a.docx", data=odd)


def test_a_document_with_a_workbook_inside_is_a_document() -> None:
    file = io.BytesIO(build_document(build_paragraph("Hello")))
    workbook = io.BytesIO()
    openpyxl.Workbook().save(workbook)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("word/embeddings/a.xlsx", workbook.getvalue())
    assert inspect_file(name="a.docx", data=file.getvalue()).text == "Hello"
