"""A migrated database, made once for all processes of a test run, which each of them copies.

All migrations together take seconds. Tests that are not about them begin with a copy: the test
database of each process, and the data folders of the product's own processes.
"""

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

NAME = "chatcore.sqlite3"
FOLDER_VARIABLE = "PREPARED_DATABASE_FOLDER"  # of the test run, for all of its processes
ROOT = Path(__file__).resolve().parents[2]
KEPT_FOLDER = ROOT / ".pytest_cache" / "prepared"
# Migrations with what they import. A change of a model is one of a migration, too.
SOURCES = (
    "*/migrations/*.py",
    "*/*/migrations/*.py",
    "*/*/*/migrations/*.py",
    "*/indexes.py",
    "chatcore/base/databases/*.py",
    "chatcore/search/*.py",
    "chatcore/settings.py",
    "models_registry/*.py",
    "models_registry/catalog.json",
    "requirements-dev.lock",
)
# A database that machines share needs secrets that they share; these guard nothing.
SECRETS = {
    "CHATCORE_SECRET_KEY": "a secret of tests, which guards nothing at all",
    "CHATCORE_KEY_ENCRYPTION_KEYS": base64.urlsafe_b64encode(bytes(32)).decode(),
}
TEMPLATE_FILE = "template"  # its lines are the server and the name of the database there


def open_folder() -> None:
    """Make the folder of this test run. Processes that are started later know it."""
    os.environ[FOLDER_VARIABLE] = tempfile.mkdtemp(prefix="chatcore-prepared-")


def remove_folder() -> None:
    """Remove the folder at the end of the run, and the database on PostgreSQL."""
    folder = Path(os.environ.pop(FOLDER_VARIABLE))
    if (folder / TEMPLATE_FILE).exists():
        server, name = (folder / TEMPLATE_FILE).read_text().splitlines()
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}"'.encode())
    shutil.rmtree(folder, ignore_errors=True)


def put_database(folder: Path) -> None:
    """Put a copy into a data folder that has no database yet.

    Outside of a test run, the product makes its tables itself.
    """
    if FOLDER_VARIABLE not in os.environ or (folder / NAME).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    copy_database(folder / NAME)


def copy_database(path: Path) -> None:
    """Copy the migrated SQLite database of this test run to a path."""
    partial = path.with_name(f"{path.name}.copy")
    shutil.copyfile(_find_original(), partial)
    partial.chmod(0o600)
    partial.rename(path)


def name_template(server: str) -> str:
    """Return the name of this run's migrated database on a PostgreSQL server, given by its URL."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    name = f"chatcore_prepared_{folder.name.rpartition('-')[2]}"
    with _take_first(folder, "postgresql") as is_first:
        if is_first:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{name}"'.encode())
            (folder / TEMPLATE_FILE).write_text(f"{server}\n{name}\n")
            url = f"{server.rpartition('/')[0]}/{name}"
            # To wait for the disk at each of the migrations would take a minute.
            unsafe = {"CHATCORE_DATABASE_URL": url, "PGOPTIONS": "-c synchronous_commit=off"}
            _migrate({**SECRETS, **os.environ, **unsafe})
    return name


def create_database(server: str, name: str) -> None:
    """Create a migrated database on a PostgreSQL server; outside of a test run, an empty one."""
    template = name_template(server) if FOLDER_VARIABLE in os.environ else "template1"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())


def _find_original() -> Path:
    """Return the file that all processes of the run copy; the first one makes it."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    with _take_first(folder, "sqlite") as is_first:
        if is_first:
            kept_path = KEPT_FOLDER / f"{_hash_sources()}.sqlite3"
            if kept_path.exists():
                shutil.copyfile(kept_path, folder / NAME)
                return folder / NAME
            inherited = {
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("CHATCORE_", "DJANGO_"))
            }
            _migrate({**inherited, "CHATCORE_DATA_DIR": str(folder)})
            assert not (folder / f"{NAME}-wal").exists()  # all of it is in one file
            _keep(folder / NAME, kept_path)
    return folder / NAME


def _hash_sources() -> str:
    """Return a digest of all that the migrated database comes from."""
    digest = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _keep(path: Path, kept_path: Path) -> None:
    """Keep a migrated database for later runs, and those of earlier sources no longer."""
    KEPT_FOLDER.mkdir(parents=True, exist_ok=True)
    for former_path in KEPT_FOLDER.iterdir():
        former_path.unlink()
    partial = kept_path.with_suffix(".copy")
    shutil.copyfile(path, partial)
    partial.rename(kept_path)


@contextmanager
def _take_first(folder: Path, kind: str) -> Iterator[bool]:
    """Yield True to the first process that makes a kind; the others wait until it has."""
    with (folder / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_made = folder / f"{kind}.made"
        yield not is_made.exists()
        is_made.touch()


def _migrate(environment: dict[str, str]) -> None:
    environment = {**environment, "DJANGO_SETTINGS_MODULE": "chatcore.settings"}
    subprocess.run(
        [sys.executable, "-m", "chatcore", "migrate", "--verbosity", "0"],
        env=environment,
        check=True,
    )
