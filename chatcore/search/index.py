"""Create the search index over all messages: FTS5 on SQLite, `pg_trgm` on PostgreSQL.

Both index groups of three characters, so parts of words are found, and languages without spaces
such as Chinese. A migration that alters `Message` on SQLite makes the table anew and loses the
triggers, so it must end with another `SearchIndex()`.
"""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

TABLE = "chatcore_message_words"
MAX_RANK_CHARS = 50_000  # of a message; the tsvector of a longer text could exceed its limit

_DELETE_ROW = "INSERT INTO {table}({table}, rowid, content) VALUES ('delete', old.id, old.content);"
_INSERT_ROW = "INSERT INTO {table}(rowid, content) VALUES (new.id, new.content);"
_SQLITE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5"
    "(content, content='chatcore_message', content_rowid='id', tokenize='trigram')",
    "DROP TRIGGER IF EXISTS {table}_insert",
    "DROP TRIGGER IF EXISTS {table}_delete",
    "DROP TRIGGER IF EXISTS {table}_update",
    "CREATE TRIGGER {table}_insert AFTER INSERT ON chatcore_message BEGIN " + _INSERT_ROW + " END",
    "CREATE TRIGGER {table}_delete AFTER DELETE ON chatcore_message BEGIN " + _DELETE_ROW + " END",
    # Status and pins change often; only a changed text is indexed again.
    "CREATE TRIGGER {table}_update AFTER UPDATE OF content ON chatcore_message"
    " WHEN old.content IS NOT new.content BEGIN " + _DELETE_ROW + _INSERT_ROW + " END",
    "INSERT INTO {table}({table}) VALUES ('rebuild')",
)
_POSTGRESQL = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    "CREATE INDEX IF NOT EXISTS {table} ON chatcore_message"
    " USING gin (upper(content) gin_trgm_ops)",
)


class SearchIndex(migrations.operations.base.Operation):
    """A migration operation that creates the index if it is missing, and fills it."""

    reduces_to_sql = False
    reversible = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Change nothing: the index belongs to no model."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Create the index on SQLite and PostgreSQL; other databases search without one."""
        statements = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}
        for statement in statements.get(schema_editor.connection.vendor, ()):
            schema_editor.execute(statement.format(table=TABLE))

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Drop the index."""
        if schema_editor.connection.vendor == "sqlite":
            for event in ("insert", "delete", "update"):
                schema_editor.execute(f"DROP TRIGGER IF EXISTS {TABLE}_{event}")
            schema_editor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        else:
            schema_editor.execute(f"DROP INDEX IF EXISTS {TABLE}")

    def describe(self) -> str:
        """Return the line that `migrate` shows."""
        return "Index the words of all messages"
