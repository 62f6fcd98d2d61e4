"""Recognize images by their bytes, and read their size in pixels.

Every structure of the file is walked to its end, so a truncated file is refused, and what stands
behind the image is found. Nothing is decompressed, so a small file cannot fill the memory.
"""

import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

MAX_SIDE = 8_000  # pixels; the limit of both provider protocols
MAX_PIXELS = 50_000_000  # whoever shows the image needs four bytes for each
PIXELS_PER_TOKEN = 750
MAX_TOKENS = 1_600  # providers scale larger images down


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """The type of a complete image, its size in pixels, and the number of its bytes."""

    media_type: str
    width: int
    height: int
    byte_count: int

    @property
    def token_estimate(self) -> int:
        """Return the estimated tokens that the image costs in a request."""
        return min(MAX_TOKENS, max(1, self.width * self.height // PIXELS_PER_TOKEN))


class BrokenImage(Exception):
    """Bytes that begin like an image but are broken or too large; the text says which."""


class LargeImage(BrokenImage):
    """A whole image that has more pixels than may be sent; it can be made smaller."""


def identify_image(data: bytes) -> ImageInfo | None:
    """Return what image the bytes are; None when they do not begin like one.

    Raises BrokenImage.
    """
    for matches_signature, media_type, read_size in _FORMATS:
        if matches_signature(data):
            return _read_image(data, media_type, read_size)
    return None


def _read_image(
    data: bytes, media_type: str, read_size: Callable[[bytes], tuple[int, int, int]]
) -> ImageInfo:
    try:
        width, height, end = read_size(data)
    except (struct.error, IndexError, ValueError):
        raise BrokenImage(f"This {media_type} is damaged or incomplete.") from None
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        size_error = LargeImage if width and height else BrokenImage
        raise size_error(
            f"The image is {width} by {height} pixels; the limit is {MAX_SIDE:,} for each side."
        )
    if width * height > MAX_PIXELS:
        raise LargeImage(f"The image has {width * height:,} pixels; the limit is {MAX_PIXELS:,}.")
    return ImageInfo(media_type, width, height, end)


# The readers below return (width, height, end). They raise ValueError, IndexError or struct.error
# for data that is damaged or incomplete.


def _read_png_size(data: bytes) -> tuple[int, int, int]:
    offset = 8
    size = (0, 0)
    chunk_kinds = set()
    while offset < len(data):
        length, kind = struct.unpack_from(">I4s", data, offset)
        body = data[offset + 4 : offset + 8 + length]
        if zlib.crc32(body) != struct.unpack_from(">I", data, offset + 8 + length)[0]:
            raise ValueError("checksum")
        if offset == 8 and (kind != b"IHDR" or length != 13):
            raise ValueError("header")
        if kind == b"IHDR":
            size = struct.unpack_from(">II", body, 4)
        chunk_kinds.add(kind)
        offset += 12 + length
        if kind == b"IEND":
            break
    if not {b"IHDR", b"IDAT", b"IEND"} <= chunk_kinds:
        raise ValueError("incomplete")
    return *size, offset


_JPEG_SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_STANDALONE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))


# In the pixels, what follows an FF is data, or a mark to begin anew, or the next segment.
_JPEG_NEXT_MARKER = re.compile(rb"\xff(?=[^\x00\xff\xd0-\xd7])")


def _read_jpeg_size(data: bytes) -> tuple[int, int, int]:
    offset = 2
    size = (0, 0)
    has_pixels = False
    while True:
        while data[offset] == 0xFF and data[offset + 1] == 0xFF:
            offset += 1  # fill bytes before a marker
        if data[offset] != 0xFF:
            raise ValueError("marker")
        marker = data[offset + 1]
        offset += 2
        if marker == 0xD9 and has_pixels:
            return *size, offset
        if marker in _JPEG_STANDALONE_MARKERS:
            continue
        (length,) = struct.unpack_from(">H", data, offset)
        if marker in _JPEG_SIZE_MARKERS:
            height, width = struct.unpack_from(">HH", data, offset + 3)
            size = (width, height)
        if length < 2 or marker == 0xD9:
            raise ValueError("segment")
        offset += length
        if marker == 0xDA:  # the pixels follow, up to the next segment or the end marker
            has_pixels = True
            next_marker = _JPEG_NEXT_MARKER.search(data, offset)
            if next_marker is None:
                raise ValueError("incomplete")
            offset = next_marker.start()


def _read_gif_size(data: bytes) -> tuple[int, int, int]:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    offset = 13 + _count_color_table_bytes(flags)
    frame_count = 0
    while data[offset] != 0x3B:  # the trailer
        if data[offset] == 0x2C:  # a frame
            frame_left, frame_top, frame_width, frame_height, flags = struct.unpack_from(
                "<HHHHB", data, offset + 1
            )
            if frame_left + frame_width > width or frame_top + frame_height > height:
                raise ValueError("frame")
            offset += 11 + _count_color_table_bytes(flags)
            frame_count += 1
        elif data[offset] == 0x21:  # an extension
            offset += 2
        else:
            raise ValueError("block")
        while data[offset]:  # data blocks, each after its length; an empty one ends them
            offset += 1 + data[offset]
        offset += 1
    if not frame_count:
        raise ValueError("empty")
    return width, height, offset + 1


def _count_color_table_bytes(flags: int) -> int:
    has_table = flags & 0x80
    return 3 << ((flags & 7) + 1) if has_table else 0


def _read_webp_size(data: bytes) -> tuple[int, int, int]:
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data) + 1:  # one byte of padding may be missing
        raise ValueError("incomplete")
    kind, size = struct.unpack_from("<4sI", data, 12)
    if kind != b"VP8X" and 20 + size > len(data):
        raise ValueError("incomplete")
    if kind == b"VP8X":
        flags = data[24:30]
        if not (b"VP8 " in data[30:] or b"VP8L" in data[30:]) or len(flags) < 6:
            raise ValueError("empty")
        width, height = (1 + int.from_bytes(side, "little") for side in (flags[:3], flags[3:]))
        return width, height, length + 8
    if kind == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), length + 8
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF, length + 8
    raise ValueError("chunk")


_FORMATS: tuple[
    tuple[Callable[[bytes], bool], str, Callable[[bytes], tuple[int, int, int]]], ...
] = (
    (lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"), "image/png", _read_png_size),
    (lambda data: data.startswith(b"\xff\xd8\xff"), "image/jpeg", _read_jpeg_size),
    (lambda data: data.startswith((b"GIF87a", b"GIF89a")), "image/gif", _read_gif_size),
    (lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP", "image/webp", _read_webp_size),
)
