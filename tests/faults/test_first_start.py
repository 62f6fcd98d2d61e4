"""Two first starts at once on one empty database: both prepare it, one after the other."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.worker_processes import KINDS, SERVER

pytestmark = [pytest.mark.faults, pytest.mark.lasting]
PREPARE = """
import django
django.setup()
from chatcore.management.commands.serve import Command
print(Command()._prepare("127.0.0.1", 8000))
"""


def start_preparing(folder: Path, url: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", PREPARE],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "chatcore.settings",
            "CHATCORE_DATA_DIR": str(folder),
            "CHATCORE_DATABASE_URL": url,
            "CHATCORE_SECRET_KEY": "a secret of tests",
            "CHATCORE_KEY_ENCRYPTION_KEYS": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def prepare_twice(folder: Path, url: str) -> None:
    processes = [start_preparing(folder, url) for _ in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        assert "/login/once/" in output


@pytest.mark.slow
def test_on_one_folder(tmp_path: Path) -> None:
    prepare_twice(tmp_path, f"sqlite:///{tmp_path}/chatcore.sqlite3")


@pytest.mark.slow
@pytest.mark.skipif("postgres" not in KINDS, reason="needs a PostgreSQL server")
def test_on_one_server(tmp_path: Path) -> None:
    name = f"chatcore_start_{os.getpid()}"
    with psycopg.connect(SERVER, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            prepare_twice(tmp_path, f"{SERVER.rpartition('/')[0]}/{name}")
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
