"""The secrets of a first start: made once, whole, and never for a database of many machines."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chatcore.base import secret_files

READ_SECRETS = """
from django.conf import settings
print(settings.SECRET_KEY, *settings.CHATCORE["KEY_ENCRYPTION_KEYS"])
"""


def start_reading(folder: Path, **variables: str) -> "subprocess.Popen[str]":
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("CHATCORE_")
    }
    return subprocess.Popen(
        [sys.executable, "-c", READ_SECRETS],
        env={
            **inherited,
            "DJANGO_SETTINGS_MODULE": "chatcore.settings",
            "CHATCORE_DATA_DIR": str(folder),
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_secrets(folder: Path, **variables: str) -> str:
    return start_reading(folder, **variables).communicate(timeout=60)[0]


@pytest.mark.slow
def test_processes_that_start_at_once_get_the_same_secrets(tmp_path: Path) -> None:
    processes = [start_reading(tmp_path) for _ in range(4)]
    answers = {process.communicate(timeout=60) for process in processes}
    assert len(answers) == 1
    (secrets, errors), *_ = answers
    assert (len(secrets.split()), errors) == (2, "")


@pytest.mark.slow
def test_an_empty_file_of_an_earlier_start_is_made_anew(tmp_path: Path) -> None:
    for name in ("secret-key", "key-encryption-key"):
        (tmp_path / name).touch()
    secrets = read_secrets(tmp_path)
    assert len(secrets.split()) == 2
    assert read_secrets(tmp_path) == secrets


def test_only_their_owner_may_read_them(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    secret_files.load_secret(path, lambda: "words")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_disk_that_is_full_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space left"):
            secret_files.load_secret(tmp_path / "secret", lambda: "words")
    assert list(tmp_path.iterdir()) == []
    assert secret_files.load_secret(tmp_path / "secret", lambda: "other words") == "other words"


@pytest.mark.parametrize("name", ["CHATCORE_SECRET_KEY", "CHATCORE_KEY_ENCRYPTION_KEYS"])
def test_a_database_of_many_machines_starts_with_no_secret_of_one(
    tmp_path: Path, name: str
) -> None:
    variables: dict[str, Any] = {
        "CHATCORE_DATABASE_URL": "postgres://me@db.internal/chatcore",
        "CHATCORE_SECRET_KEY": "a secret of tests",
        "CHATCORE_KEY_ENCRYPTION_KEYS": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    }
    process = start_reading(tmp_path, **{**variables, name: ""})
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, "")
    assert errors.strip().endswith(
        f"{name} must be set with PostgreSQL, to the same value on each machine (docs/settings.md)."
    )
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


@pytest.mark.slow
def test_secrets_that_an_earlier_version_made_are_used_on(tmp_path: Path) -> None:
    secrets = read_secrets(tmp_path)
    url = "postgres://me@db.internal/chatcore"
    assert read_secrets(tmp_path, CHATCORE_DATABASE_URL=url) == secrets
