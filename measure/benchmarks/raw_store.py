"""The floor: the same work in raw SQLite, with the same durability and no code around it."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Self

SCHEMA = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
CREATE TABLE session (
    id INTEGER PRIMARY KEY, last_seq INTEGER, tokens INTEGER, summary TEXT, boundary INTEGER
);
CREATE TABLE message (
    id INTEGER PRIMARY KEY, session INTEGER, seq INTEGER, role TEXT, content TEXT,
    UNIQUE (session, seq)
);
CREATE TABLE event (id INTEGER PRIMARY KEY, session INTEGER, name TEXT, data TEXT);
INSERT INTO session VALUES (1, 0, 0, '', 0);
"""


class RawStore:
    """One session in a SQLite file of its own; use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.executescript(SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def append_message(self, role: str, content: str) -> None:
        """Store a message with the next number, durably."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        (seq,) = execute(
            "UPDATE session SET last_seq = last_seq + 1, tokens = tokens + ?"
            " WHERE id = 1 RETURNING last_seq",
            (len(content) // 4,),
        ).fetchone()
        execute(
            "INSERT INTO message (session, seq, role, content) VALUES (1, ?, ?, ?)",
            (seq, role, content),
        )
        execute("COMMIT")

    def append_messages(self, messages: Iterable[tuple[str, str]]) -> None:
        """Store many messages, each `(role, content)`, in one transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        rows = [(seq, role, content) for seq, (role, content) in enumerate(messages, start=1)]
        self._connection.executemany(
            "INSERT INTO message (session, seq, role, content) VALUES (1, ?, ?, ?)", rows
        )
        self._connection.execute("UPDATE session SET last_seq = ?", (len(rows),))
        self._connection.execute("COMMIT")

    def check_size(self) -> None:
        """Read a sum, and store an event that says how large the context is, durably."""
        execute = self._connection.execute
        tokens, summary, boundary = execute(
            "SELECT tokens, summary, boundary FROM session WHERE id = 1"
        ).fetchone()
        usage = {"tokens": tokens, "boundary": boundary, "has_summary": bool(summary)}
        execute(
            "INSERT INTO event (session, name, data) VALUES (1, 'context.usage', ?)",
            (json.dumps(usage),),
        )

    def compact(self, summary: str) -> str:
        """Read all messages, write them down as one text, and store a summary in their place."""
        execute = self._connection.execute
        rows = execute("SELECT seq, role, content FROM message WHERE session = 1 ORDER BY seq")
        transcript = "\n\n".join(f"{seq} {role}: {content}" for seq, role, content in rows)
        execute("UPDATE session SET summary = ?, boundary = last_seq WHERE id = 1", (summary,))
        return transcript

    def count_bytes(self) -> int:
        """Return the bytes of the pages in use."""
        return count_used_bytes(self._connection)


def count_used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of a database's pages, without those that are free."""
    values = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    ]
    pages, free_pages, page_size = values
    return int((pages - free_pages) * page_size)
