"""The file of a backup: a tar archive of a manifest, the database's copy, the keys and outputs.

Its last member has the SHA-256 of every other one. Whoever reads the archive reads it to its end,
where gzip has a checksum too, so a file with one wrong bit is refused.
"""

import contextlib
import fcntl
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any, BinaryIO

from chatcore.base.file_locks import hold_lock, is_free
from chatcore.base.secret_files import sync_folder

FORMAT = "chatcore-backup-2"
FORMAT_WITHOUT_DIGESTS = "chatcore-backup-1"  # of earlier versions; gzip's checksum guards it
MANIFEST = "manifest.json"
DATABASE = "database"
OUTPUTS = "outputs/"
DIGESTS = "sha256.json"
# What the data folder holds besides the database and what can be made again.
KEY_FILES = ("secret-key", "key-encryption-key")
GZIP_LEVEL = 1  # a copy of a database shrinks by two thirds; higher levels hardly gain
CHUNK_BYTES = 1024 * 1024
SCRATCH_PREFIX = ".backup-"


class InvalidBackup(Exception):
    """A file that is no backup, or not a whole one."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a backup says of itself."""

    vendor: str  # of the database, as Django names it
    created_at: str
    migrations: list[str]  # all that were applied, as app.name
    counts: dict[str, int]  # rows by table, for people
    format: str = FORMAT


@dataclass
class ReadArchive:
    """What was read of an archive: its manifest, and the bytes and the digest of each member."""

    manifest: Manifest | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    expected_digests: dict[str, str] | None = None


def write_archive(
    path: Path,
    manifest: Manifest,
    files: dict[str, Path],
    outputs: Iterable[tuple[str, bytes]] = (),
) -> None:
    """Write the archive to `path` at once: a file with that name is always a whole backup.

    `outputs` are names and contents. Only the file's owner may read it.
    """
    with open_scratch_file(path.parent) as (scratch_path, scratch_file):
        digests: dict[str, str] = {}
        with tarfile.open(fileobj=scratch_file, mode="w:gz", compresslevel=GZIP_LEVEL) as archive:
            manifest_text = json.dumps(asdict(manifest), indent=1).encode()
            digests[MANIFEST] = _add_bytes(archive, MANIFEST, manifest_text)
            for name, file in files.items():
                archive.add(file, arcname=name, filter=_make_anonymous)
                with file.open("rb") as copied_file:
                    digests[name] = hashlib.file_digest(copied_file, "sha256").hexdigest()
            for name, content in outputs:
                digests[OUTPUTS + name] = _add_bytes(archive, OUTPUTS + name, content)
            _add_bytes(archive, DIGESTS, json.dumps(digests, indent=1).encode())
        scratch_file.flush()
        os.fsync(scratch_file.fileno())
        scratch_path.replace(path)
    sync_folder(path.parent)


def check_archive(path: Path) -> ReadArchive:
    """Read the whole archive, and compare every byte with its digests. Raises InvalidBackup."""
    return _read_archive(path, None)


def extract_archive(path: Path, folder: Path) -> Manifest:
    """Write the database's copy and the key files into `folder`. Raises InvalidBackup.

    The whole file is checked, so a damaged one is found before anything is replaced.
    """
    manifest = _read_archive(path, folder).manifest
    assert manifest, "it was checked"
    return manifest


def read_outputs(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the outputs. Raises InvalidBackup."""
    with _open_archive(path) as archive:
        for member in archive:
            if member.name.startswith(OUTPUTS) and member.isreg():
                file = archive.extractfile(member)
                assert file, "a regular file"
                yield member.name.removeprefix(OUTPUTS), file.read()


def _read_archive(path: Path, folder: Path | None) -> ReadArchive:
    """Read everything; write what a restore needs into the folder, if there is one."""
    found = ReadArchive()
    with _open_archive(path) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is None or member.name in found.sizes or found.expected_digests is not None:
                raise InvalidBackup(f"{path} is no whole backup: {member.name!r} is out of place.")
            found.sizes[member.name] = member.size
            if member.name in (MANIFEST, DIGESTS):
                text = content.read()
                found.digests[member.name] = hashlib.sha256(text).hexdigest()
                if member.name == MANIFEST:
                    found.manifest = _parse_manifest(text)
                else:
                    found.expected_digests = json.loads(text)
                continue
            # Only known names are written, so no archive can write elsewhere.
            is_kept = member.name in (DATABASE, *KEY_FILES)
            target = folder / member.name if folder and is_kept else None
            found.digests[member.name] = _copy(content, target)
    _refuse_incomplete(path, found)
    return found


def _refuse_incomplete(path: Path, found: ReadArchive) -> None:
    if found.manifest is None or DATABASE not in found.sizes:
        raise InvalidBackup(f"{path} is no whole backup: it has no {MANIFEST} or no database.")
    if found.manifest.format == FORMAT_WITHOUT_DIGESTS:
        return
    if found.expected_digests is None:
        raise InvalidBackup(f"{path} is no whole backup: its end with {DIGESTS} is missing.")
    own_digests = {name: found.digests[name] for name in found.digests if name != DIGESTS}
    names = own_digests.keys() | found.expected_digests.keys()
    damaged_names = sorted(
        name for name in names if own_digests.get(name) != found.expected_digests.get(name)
    )
    if damaged_names:
        raise InvalidBackup(f"{path} is no whole backup: {damaged_names[0]!r} is damaged.")


def _copy(content: IO[bytes], path: Path | None) -> str:
    """Read a content to its end, write it to the path if there is one, and return its digest."""
    digest = hashlib.sha256()
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(open(path, "wb", opener=_open_private)) if path else None
        while chunk := content.read(CHUNK_BYTES):
            digest.update(chunk)
            if target:
                target.write(chunk)
    return digest.hexdigest()


@contextlib.contextmanager
def _open_archive(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with (
            gzip.open(path) as stream,
            tarfile.open(fileobj=stream, mode="r|") as archive,
        ):
            yield archive
            # The end of the archive is not that of the file, where gzip's checksum is.
            while stream.read(CHUNK_BYTES):
                pass
    except (
        tarfile.TarError,
        gzip.BadGzipFile,
        EOFError,
        zlib.error,
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
    ) as error:
        raise InvalidBackup(f"{path} is no whole backup: {error}") from None


@contextlib.contextmanager
def open_scratch_file(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a private file in `folder`, and remove it afterwards if it is still there."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=SCRATCH_PREFIX)
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield path, file
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def open_scratch_folder(parent: Path) -> Iterator[Path]:
    """Make a private folder in `parent`, and remove it afterwards.

    What killed processes have left there goes first: each holds a lock on its own while it lives.
    """
    for left_path in parent.glob(f"{SCRATCH_PREFIX}*"):
        _remove_abandoned(left_path)
    with tempfile.TemporaryDirectory(dir=parent, prefix=SCRATCH_PREFIX) as name:
        path = Path(name)
        with hold_lock(path):
            yield path


def _remove_abandoned(path: Path) -> None:
    if not is_free(path):
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _parse_manifest(text: bytes) -> Manifest:
    values: dict[str, Any] = json.loads(text)
    if values.get("format") not in (FORMAT, FORMAT_WITHOUT_DIGESTS):
        raise InvalidBackup(f"This is no backup in the format {FORMAT}, or an earlier one.")
    return Manifest(**{each.name: values[each.name] for each in fields(Manifest)})


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> str:
    """Add a member and return its digest."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))
    return hashlib.sha256(data).hexdigest()


def _make_anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out the names of this machine's users."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member
