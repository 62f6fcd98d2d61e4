"""Make photographs fit that no provider takes: HEIC, AVIF, and those of 48 megapixels.

The picture becomes a JPEG or PNG of at most MAX_SIDE pixels a side, in a child process.
"""

from pathlib import Path

from chatcore.files.child_process import UnreadableFile, run_reader

# The brands of a file in ISO's container that are pictures.
_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1", b"avif")
_READER = Path(__file__).with_name("photograph_reader.py")


def is_foreign(data: bytes) -> bool:
    """Return whether the bytes are a picture of a kind that has to be converted."""
    return data[4:8] == b"ftyp" and data[8:12] in _BRANDS


def make_fit(data: bytes, *, owner: object = None) -> bytes:
    """Return the picture as providers take it. Raises UnreadableFile."""
    output, exit_code = run_reader(_READER, data, owner=owner)
    if exit_code or not output:
        raise UnreadableFile("This photograph is damaged, or too large to be made smaller.")
    return output
