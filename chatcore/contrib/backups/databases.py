"""Copy a whole database to a file and back, with what each database brings for it."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from django.db import connection, connections

# Tables of a newer version may be there that the copy does not know, so the schema goes as a whole.
# Whoever still uses the database holds locks; then nothing is changed.
EMPTY_POSTGRESQL = """
SET lock_timeout = '10s';
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
"""


class CopyFailed(Exception):
    """The database could not be copied."""


def copy_to(path: Path) -> None:
    """Write one consistent state of the database to a new file. Raises CopyFailed."""
    if connection.vendor == "sqlite":
        _copy_from_sqlite(path)
    else:
        _run_tool("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={path}")


def copy_from(path: Path) -> None:
    """Replace everything in the database by the copy, or nothing. Raises CopyFailed."""
    connections.close_all()
    if connection.vendor == "sqlite":
        _copy_into_sqlite(path)
    else:
        _copy_into_postgresql(path)


def _copy_from_sqlite(path: Path) -> None:
    # VACUUM INTO reads in one transaction, which stops no writer, and leaves out deleted rows.
    try:
        with closing(sqlite3.connect(connection.settings_dict["NAME"])) as source:
            source.execute("VACUUM INTO ?", (str(path),))
    except sqlite3.Error as error:
        raise CopyFailed(f"SQLite cannot copy the database: {error}") from None


def _copy_into_sqlite(path: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(path)) as copy,
            closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=20)) as target,
        ):
            (answer,) = copy.execute("PRAGMA quick_check").fetchone()
            if answer != "ok":
                raise CopyFailed(f"The copy of the database is damaged: {answer}")
            copy.backup(target)  # one transaction: readers see the old state, then the new one
    except sqlite3.Error as error:
        raise CopyFailed(f"SQLite cannot replace the database: {error}") from None


def _copy_into_postgresql(path: Path) -> None:
    # As a script, because only so the old tables go in the same transaction.
    script = path.with_suffix(".sql")
    _run_tool("pg_restore", "--no-owner", "--no-privileges", f"--file={script}", str(path))
    _run_tool(
        "psql",
        "--no-psqlrc",
        "--quiet",
        "--single-transaction",
        "--set=ON_ERROR_STOP=1",
        f"--command={EMPTY_POSTGRESQL}",
        f"--file={script}",
    )


def _run_tool(tool: str, *arguments: str) -> None:
    """Run a tool of PostgreSQL on our database; the password is in no command line."""
    database = connection.settings_dict
    settings = {
        "PGHOST": database["HOST"],
        "PGPORT": str(database["PORT"] or ""),
        "PGUSER": database["USER"],
        "PGPASSWORD": database["PASSWORD"],
        "PGDATABASE": database["NAME"],
        "PGSSLMODE": database["OPTIONS"].get("sslmode", ""),
    }
    try:
        process = subprocess.run(  # noqa: S603 - one of three known programs
            [tool, *arguments],
            env=os.environ | {name: value for name, value in settings.items() if value},
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise CopyFailed(
            f"{tool} is not installed; it comes with the client programs of PostgreSQL."
        ) from None
    if process.returncode:
        raise CopyFailed(f"{tool} failed: {process.stderr.strip()}")
