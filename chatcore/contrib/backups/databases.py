"""Copy a whole database to a file and back, with what each database brings for it."""

import os
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from django.db import connection, connections

# Tables of a newer version may be there that the copy does not know, so all that is in the schema
# goes, but for what belongs to an extension. The schema itself stays: a role may create in it and
# not own it, and its grants are the operator's. If another process holds a lock for ten seconds,
# nothing is changed.
EMPTY_POSTGRESQL = """
SET lock_timeout = '10s';
DO $$
DECLARE
    command text;
BEGIN
    FOREACH command IN ARRAY ARRAY(
        SELECT format(
            'DROP %s IF EXISTS %s CASCADE',
            CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
            pg_class.oid::regclass
        )
        FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
            -- What an extension, a column or another table brings along goes or stays with it.
            AND NOT EXISTS (
                SELECT FROM pg_depend
                WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid
                    AND deptype IN ('e', 'i', 'a') AND objsubid = 0
            )
        UNION ALL
        SELECT format('DROP ROUTINE IF EXISTS %s CASCADE', pg_proc.oid::regprocedure)
        FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
            AND NOT EXISTS (
                SELECT FROM pg_depend
                WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
            )
    )
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
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
    # Comments are those on extensions, which only their owner may write.
    leave_out = ("--no-owner", "--no-privileges", "--no-comments")
    _run_tool("pg_restore", *leave_out, f"--file={script}", str(path))
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
    """Run a tool of PostgreSQL on our database, with each option of its address.

    They are in a file and not in the command line, which others on the machine can read.
    """
    password = connection.settings_dict["PASSWORD"]
    try:
        with tempfile.NamedTemporaryFile("w", prefix="chatcore-service-") as service:
            service.write("\n".join(["[chatcore]", *_list_connection_options()]) + "\n")
            service.flush()
            process = subprocess.run(  # noqa: S603 - one of three known programs
                [tool, *arguments],
                env=os.environ
                | {"PGSERVICEFILE": service.name, "PGSERVICE": "chatcore"}
                | ({"PGPASSWORD": password} if password else {}),
                capture_output=True,
                text=True,
            )
    except FileNotFoundError:
        raise CopyFailed(
            f"{tool} is not installed; it comes with the client programs of PostgreSQL."
        ) from None
    if process.returncode:
        raise CopyFailed(f"{tool} failed: {process.stderr.strip()}")


def _list_connection_options() -> list[str]:
    """Return what libpq knows of the database's address and options, as lines of a service file."""
    from psycopg.pq import Conninfo

    database = connection.settings_dict
    options = {
        **database["OPTIONS"],
        "host": database["HOST"],
        "port": database["PORT"],
        "user": database["USER"],
        "dbname": database["NAME"],
    }
    names = {option.keyword.decode() for option in Conninfo.get_defaults()} - {"password"}
    return [f"{name}={value}" for name, value in options.items() if name in names and value]
