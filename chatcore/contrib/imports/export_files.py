"""The files of an export as somebody sends them: single ones, archives, archives in archives.

Nothing is unpacked to a disk under its own name, so no name leads anywhere. What an archive says of
its sizes may be a lie; readers stop at limits of their own.
"""

import codecs
import io
import json
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from chatcore.base.rest import limits
from chatcore.base.rest.parsers import require_few_values
from chatcore.contrib.imports.json_items import (
    CHUNK_BYTES,
    MAX_ITEM_BYTES,
    Item,
    ListEndsEarly,
    read_outline,
    split_items,
)
from chatcore.files.text import decode_text

# What zipfile raises for a file that somebody else made: broken or cut off, damaged inside, with a
# compression that Python has not (NotImplementedError, which is a RuntimeError), with a password.
# And json: for no JSON, or for too deep a one, whose RecursionError is a RuntimeError too.
UNREADABLE = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    zlib.error,
    RuntimeError,
    ValueError,
)
MAX_MEMBERS = 200_000
MAX_ATTACHED_BYTES = 20_000_000
MAX_UNPACKED_BYTES = 20_000_000_000
# No text shrinks to less than a thousandth; one that does is made to fill a disk or a memory.
MAX_RATIO = 400
RATIO_COUNTS_FROM = 20_000_000
SAMPLE_ITEMS = 40
SAMPLE_BYTES = 256 * 1024
# Bytes of a temporary copy that stay in memory.
SPOOLED_BYTES = 8_000_000
_JUNK = re.compile(r"(^|/)(__MACOSX/|\._|\.DS_Store$|Thumbs\.db$)")


class UnreadableExport(Exception):
    """A file that cannot be read at all; the text is for who sent it."""


@dataclass(eq=False)
class Member:
    """A file of an export."""

    name: str
    size: int
    open_raw: Callable[[], IO[bytes]]

    @property
    def base_name(self) -> str:
        """Return the name without its folders."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def extension(self) -> str:
        """Return the end of the name from its last point on, in small letters."""
        return PurePosixPath(self.base_name).suffix.lower()

    def open(self) -> IO[bytes]:
        """Open the file; a text in UTF-16 comes as UTF-8, and without a byte order mark."""
        stream = self.open_raw()
        mark = stream.read(3)
        if mark[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            encoding = "utf-16-le" if mark[:2] == codecs.BOM_UTF16_LE else "utf-16-be"
            stream.close()
            return cast(IO[bytes], _Recoded(self.open_raw(), encoding))
        if mark == codecs.BOM_UTF8:
            return stream
        stream.close()
        return self.open_raw()

    def read(self, limit: int) -> bytes:
        """Return the content. Raises ValueError where it is longer."""
        with self.open() as stream:
            content = stream.read(limit + 1)
        if len(content) > limit:
            raise ValueError(f"it is larger than {limit // 1_000_000} MB")
        return content

    def read_bytes(self) -> bytes | None:
        """Return the bytes of an attached file, or None where nothing can be had."""
        try:
            with self.open_raw() as stream:
                return stream.read(MAX_ATTACHED_BYTES)
        except UNREADABLE:
            return None


class _Recoded(io.RawIOBase):
    """A text of another encoding as UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        stream.read(2)  # the mark
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            chunk = self._stream.read(CHUNK_BYTES)
            self._rest += self._decoder.decode(chunk, final=not chunk).encode(errors="replace")
            if not chunk:
                break
        end = len(self._rest) if size < 0 else size
        content, self._rest = self._rest[:end], self._rest[end:]
        return content

    def readline(self, size: int | None = -1) -> bytes:
        line = self.read(CHUNK_BYTES)
        end = line.find(b"\n") + 1 or len(line)
        self._rest = line[end:] + self._rest
        return line[:end]


@dataclass(kw_only=True)
class Sample:
    """What tells products apart: the beginning of a file.

    `items` are the first objects of a list, of the list under `conversations`, or of lines; of a
    short object they are the object itself.
    """

    kind: str  # list, object, lines, text
    keys: set[str] = field(default_factory=set)
    items: list[dict[str, object]] = field(default_factory=list)
    head: str = ""


class Export:
    """All files that were sent together."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = [member for member in members if not _JUNK.search(member.name)]

    @cached_property
    def by_base_name(self) -> dict[str, Member]:
        """Return the files by their names without folders."""
        return {member.base_name: member for member in self.members}

    @cached_property
    def by_stem(self) -> dict[str, Member]:
        """Return the files by what ChatGPT's pointers name: `file-ID` or `file_ID`."""
        stems = ((re.match(r"file[-_][A-Za-z0-9]+", m.base_name), m) for m in self.members)
        return {match.group(): member for match, member in stems if match}

    def find_by_path(self, end: str) -> Member | None:
        """Return the file whose path ends so."""
        return self._by_path_end.get(end) or next(
            (m for m in self.members if m.name.endswith("/" + end) or m.name == end), None
        )

    @cached_property
    def _by_path_end(self) -> dict[str, Member]:
        return {"/".join(m.name.split("/")[-2:]): m for m in self.members}


def open_export(files: Sequence[tuple[str, IO[bytes]]]) -> Export:
    """Return the files of an export, those in archives too. Raises UnreadableExport."""
    members: list[Member] = []
    for name, stream in files:
        members += _list_members(name, stream, depth=0)
        if len(members) > MAX_MEMBERS:
            raise UnreadableExport(f"The archive has more than {MAX_MEMBERS:,} files.")
    return Export(members)


def open_folder(folder: Path) -> Iterator[Member]:
    """Yield the files of a folder, those in archives too; links lead nowhere."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() == ".zip":
            yield from _list_members(name, path.open("rb"), depth=0)
        else:
            yield Member(
                name, path.stat().st_size, cast(Callable[[], IO[bytes]], partial(path.open, "rb"))
            )


def take_sample(member: Member) -> Sample:
    """Return how a file begins. Raises one of UNREADABLE."""
    with member.open() as stream:
        raw_head = stream.read(SAMPLE_BYTES)
    head = decode_text(raw_head) or raw_head.decode(errors="replace")
    start = raw_head.lstrip()[:1]
    if start == b"[":
        return Sample(kind="list", items=_take_items(member, ()), head=head)
    if start != b"{":
        return Sample(kind="text", head=head)
    first_line, _, rest = raw_head.strip().partition(b"\n")
    line = _parse_or_none(first_line)
    if isinstance(line, dict) and (member.extension == ".jsonl" or rest.lstrip()[:1] == b"{"):
        lines = [_parse_or_none(text) for text in raw_head.split(b"\n")[:SAMPLE_ITEMS]]
        items = [value for value in lines if isinstance(value, dict)]
        return Sample(kind="lines", keys=set(line), items=items, head=head)
    if len(raw_head) < SAMPLE_BYTES:
        whole = parse_json(raw_head)
        keys = set(whole) if isinstance(whole, dict) else set()
        nested = to_items(whole.get("conversations")) if isinstance(whole, dict) else []
        items = nested or ([whole] if isinstance(whole, dict) else [])
        return Sample(kind="object", keys=keys, items=items[:SAMPLE_ITEMS], head=head)
    try:
        items = _take_items(member, ("conversations",))
        outline = read_outline(io.BytesIO(raw_head))
    except ListEndsEarly:  # it has no such list: what it is itself is told by its keys
        with member.open() as stream:
            outline = read_outline(stream)
        items = [outline]
    return Sample(kind="object", keys=set(outline), items=items, head=head)


def to_items(value: object) -> list[dict[str, object]]:
    """Return the objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def parse_json(raw: bytes) -> object:
    """Return the value of JSON in any encoding. Raises ValueError, also for endless nesting."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = decode_text(raw) or raw.decode(errors="replace")
    if len(raw) > limits.LARGE_BODY_BYTES:
        require_few_values(raw, limits.IMPORT_VALUES)
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _take_items(member: Member, path: Sequence[str]) -> list[dict[str, object]]:
    items: list[dict[str, object]] = []
    try:
        with member.open() as stream:
            for number, item in enumerate(split_items(stream, path)):
                value = None if item.is_too_long else _parse_or_none(item.raw)
                if isinstance(value, dict):
                    items.append(value)
                if number >= SAMPLE_ITEMS:
                    break
    except ListEndsEarly:
        if not items:
            raise
    return items


def _parse_or_none(raw: bytes) -> object:
    try:
        return parse_json(raw)
    except ValueError:
        return None


def _list_members(name: str, stream: IO[bytes], *, depth: int) -> Iterator[Member]:
    stream.seek(0)
    is_archive = stream.read(2) == b"PK"
    stream.seek(0, io.SEEK_END)
    size = stream.tell()
    if not is_archive:
        yield Member(name, size, lambda: cast(IO[bytes], _Window(stream, size)))
        return
    try:
        archive = zipfile.ZipFile(_Window(stream, size))
        entries = archive.infolist()
    except UNREADABLE as error:
        raise UnreadableExport(
            f"The archive {name} cannot be read: {error}. It may have been cut off on its way."
        ) from None
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise UnreadableExport(f"The archive {name} unpacks to more than 20 GB.")
    for entry in entries[: MAX_MEMBERS + 1]:
        if entry.is_dir():
            continue
        if entry.file_size > RATIO_COUNTS_FROM and (
            entry.file_size > MAX_RATIO * max(entry.compress_size, 1)
        ):
            raise UnreadableExport(
                f"The archive {name} cannot be read: {entry.filename[:200]} unpacks to more than"
                f" {MAX_RATIO} times its size, as no export does."
            )
        if depth == 0 and entry.filename.lower().endswith(".zip"):
            yield from _list_nested(archive, entry)
        else:
            yield Member(
                entry.filename.replace("\\", "/"), entry.file_size, _open_later(archive, entry)
            )


def _list_nested(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[Member]:
    copy: Any = tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES)  # noqa: SIM115
    try:
        with archive.open(entry) as source:
            left = entry.file_size  # what it says; zipfile reads no more
            while left > 0 and (chunk := source.read(min(CHUNK_BYTES, left))):
                copy.write(chunk)
                left -= len(chunk)
        yield from _list_members(entry.filename, copy, depth=1)
    except UNREADABLE as error:
        raise UnreadableExport(f"The archive {entry.filename} cannot be read: {error}.") from None


def _open_later(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(entry)


class PositionedFile(io.RawIOBase):
    """A file of known size with a position of its own; what it reads is its heir's to say."""

    def __init__(self, size: int) -> None:
        self._size, self._position = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position


class _Window(PositionedFile):
    """A view of a file, because several readers share the file."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        super().__init__(size)
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        self._stream.seek(self._position)
        content = self._stream.read(size if size >= 0 else max(0, self._size - self._position))
        self._position += len(content)
        return content

    def readline(self, size: int | None = -1) -> bytes:
        self._stream.seek(self._position)
        line = self._stream.readline(-1 if size is None else size)
        self._position += len(line)
        return line


__all__ = ["MAX_ITEM_BYTES", "Export", "Item", "Member", "Sample", "open_export", "take_sample"]
