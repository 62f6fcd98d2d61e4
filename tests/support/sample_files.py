"""Small files of every kind that can be attached."""

import struct
import zlib
from io import BytesIO

import pypdf


def build_png(width: int, height: int) -> bytes:
    """Build a gray image. Large ones have no pixel data."""
    rows = zlib.compress((b"\0" + bytes(width)) * height) if width * height < 10_000 else b"\0"
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", rows),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def build_jpeg(width: int, height: int) -> bytes:
    """Build the segments of an image without the data that a decoder needs."""
    frame = struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    scan = b"\x00\x08\x01\x01\x00\x00\x3f\x00"
    return (
        b"\xff\xd8"
        + b"\xff\xe0\x00\x10JFIF\0"
        + bytes(9)
        + b"\xff\xc0"
        + frame
        + b"\xff\xda"
        + scan
        + b"\x12\xff\x00\x34"
        + b"\xff\xd9"
    )


def build_gif(width: int, height: int) -> bytes:
    """Build an image of two colors and one frame, with a comment before it."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    comment = b"\x21\xfe\x02hi\x00"
    return (
        head
        + comment
        + b"\x2c"
        + struct.pack("<HHHHB", 0, 0, width, height, 0)
        + b"\x02\x02\x4c\x01\x00"
        + b"\x3b"
    )


def build_webp(width: int, height: int) -> bytes:
    """Build the header of a lossless image."""
    body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(7)
    chunk = b"VP8L" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def build_pdf(text: str, *, password: str = "") -> bytes:
    """Build a document of one page with this text."""
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(300, 300)
    font = pypdf.generic.DictionaryObject(
        {
            pypdf.generic.NameObject("/Type"): pypdf.generic.NameObject("/Font"),
            pypdf.generic.NameObject("/Subtype"): pypdf.generic.NameObject("/Type1"),
            pypdf.generic.NameObject("/BaseFont"): pypdf.generic.NameObject("/Helvetica"),
        }
    )
    fonts = pypdf.generic.DictionaryObject({pypdf.generic.NameObject("/F1"): font})
    page[pypdf.generic.NameObject("/Resources")] = pypdf.generic.DictionaryObject(
        {pypdf.generic.NameObject("/Font"): fonts}
    )
    content = pypdf.generic.DecodedStreamObject()
    content.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
    page[pypdf.generic.NameObject("/Contents")] = writer._add_object(content)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    data = BytesIO()
    writer.write(data)
    return data.getvalue()


def build_book(pages: int, words: int) -> bytes:
    """Build a PDF file of so many pages, each with so many words."""
    writer = pypdf.PdfWriter()
    page = pypdf.PdfReader(BytesIO(build_pdf("word " * words))).pages[0]
    for _ in range(pages):
        writer.add_page(page)
    data = BytesIO()
    writer.write(data)
    return data.getvalue()
