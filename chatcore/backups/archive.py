"""The file of a backup: a tar archive of a manifest, the database's copy, the keys and outputs."""

import contextlib
import io
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

FORMAT = "chatcore-backup-1"
MANIFEST = "manifest.json"
DATABASE = "database"
OUTPUTS = "outputs/"
# What the data folder holds besides the database and what can be made again.
KEY_FILES = ("secret-key", "key-encryption-key")
GZIP_LEVEL = 1  # a copy of a database shrinks by two thirds; higher levels hardly gain


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
        with tarfile.open(fileobj=scratch_file, mode="w:gz", compresslevel=GZIP_LEVEL) as archive:
            _add_bytes(archive, MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
            for name, file in files.items():
                archive.add(file, arcname=name, filter=_make_anonymous)
            for name, content in outputs:
                _add_bytes(archive, OUTPUTS + name, content)
        scratch_file.flush()
        os.fsync(scratch_file.fileno())
        scratch_path.replace(path)
    _sync_folder(path.parent)


def extract_archive(path: Path, folder: Path) -> Manifest:
    """Write the database's copy and the key files into `folder`. Raises InvalidBackup."""
    with _open_archive(path) as archive:
        manifest = _read_manifest(archive)
        # Only known names are read, so no archive can write elsewhere. The whole file is looked at,
        # so one that was cut is found before anything is replaced.
        for member in archive:
            if member.name in (DATABASE, *KEY_FILES) and member.isreg():
                _extract_member(archive, member, folder / member.name)
        if not (folder / DATABASE).exists():
            raise InvalidBackup(f"{path} is no whole backup: it has no database.")
    return manifest


def read_outputs(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the outputs. Raises InvalidBackup."""
    with _open_archive(path) as archive:
        for member in archive:
            if member.name.startswith(OUTPUTS) and member.isreg():
                file = archive.extractfile(member)
                assert file, "a regular file"
                yield member.name.removeprefix(OUTPUTS), file.read()


@contextlib.contextmanager
def _open_archive(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, mode="r:gz") as archive:
            yield archive
    except (tarfile.TarError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise InvalidBackup(f"{path} is no whole backup: {error}") from None


@contextlib.contextmanager
def open_scratch_file(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a private file in `folder`, and remove it afterwards if it is still there."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".backup-")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)


def _read_manifest(archive: tarfile.TarFile) -> Manifest:
    file = archive.extractfile(MANIFEST)
    values: dict[str, Any] = json.load(file) if file else {}
    if values.get("format") != FORMAT:
        raise InvalidBackup(f"This is no backup in the format {FORMAT}.")
    return Manifest(**{each.name: values[each.name] for each in fields(Manifest)})


def _extract_member(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = archive.extractfile(member)
    assert source, "a regular file"
    with open(path, "wb", opener=_open_private) as target:
        shutil.copyfileobj(source, target)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def _make_anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out the names of this machine's users."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
