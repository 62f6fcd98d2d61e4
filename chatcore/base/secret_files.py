"""Secrets that are made once and kept in files of the data folder."""

import os
from collections.abc import Callable
from pathlib import Path

from chatcore.base.file_locks import hold_lock


def load_secret(path: Path, create_secret: Callable[[], str]) -> str:
    """Read a secret from a file, which is made if it is missing or empty.

    Only the owner may read the file. It is written beside its place and then renamed, so that a
    process that dies, or a full disk, leaves no half of it. Processes that start at once get the
    same secret.
    """
    secret = _read_secret(path)
    if secret:
        return secret
    with hold_lock(path.parent):
        # Another process may have been faster.
        secret = _read_secret(path)
        if not secret:
            secret = create_secret()
            _write_secret(path, secret)
    return secret


def has_secret(path: Path) -> bool:
    """Return whether the file has a secret in it."""
    return bool(_read_secret(path))


def _read_secret(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""


def _write_secret(path: Path, secret: str) -> None:
    draft_path = path.with_name(f".{path.name}.{os.getpid()}")
    # The file is private before the secret is in it.
    descriptor = os.open(draft_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        draft_path.replace(path)
    except OSError:
        draft_path.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the new name last: without it, a power failure could undo the renaming."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
