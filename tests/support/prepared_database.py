"""A migrated SQLite database for product processes, made once for all of a test run.

A first start makes its tables for some seconds. Tests that are not about that begin with a copy.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAME = "chatcore.sqlite3"
FOLDER_VARIABLE = "PREPARED_DATABASE_FOLDER"  # of the test run, for all of its processes


def open_folder() -> None:
    """Make the folder of this test run. Processes that are started later know it."""
    os.environ[FOLDER_VARIABLE] = tempfile.mkdtemp(prefix="chatcore-prepared-")


def remove_folder() -> None:
    """Remove the folder at the end of the run."""
    shutil.rmtree(os.environ.pop(FOLDER_VARIABLE), ignore_errors=True)


def put_database(folder: Path) -> None:
    """Put a copy into a data folder that has no database yet.

    Outside of a test run, the product makes its tables itself.
    """
    if FOLDER_VARIABLE not in os.environ or (folder / NAME).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{NAME}.copy"
    shutil.copyfile(_find_original(), partial)
    partial.chmod(0o600)
    partial.rename(folder / NAME)


def _find_original() -> Path:
    """Return the file that all processes of the run copy; the first one makes it."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _migrate(folder)
            (folder / "done").touch()
    return folder / NAME


def _migrate(folder: Path) -> None:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CHATCORE_", "DJANGO_"))
    }
    subprocess.run(
        [sys.executable, "-m", "chatcore", "migrate", "--verbosity", "0"],
        env={**inherited, "CHATCORE_DATA_DIR": str(folder)},
        check=True,
    )
    assert not (folder / f"{NAME}-wal").exists()  # all of it is in one file
