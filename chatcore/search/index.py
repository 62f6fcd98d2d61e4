"""Create the search index over all messages and attached files.

FTS5 on SQLite, GIN on PostgreSQL (postgresql_index.py).

There are two indexes of messages. That of stems answers questions. That of trigrams, groups of
three characters, finds parts of words, and languages without spaces such as Chinese. Both say which
messages have a term and not where: on SQLite (`detail=none`) this takes a quarter of the room.
ranking.py looks at the texts for the rest.

Each message also has a term for its session, so that a search of one session reads nothing of
others. On SQLite the tables of stems hold no texts (`content=''`), and files are indexed under the
id of their message. The triggers read no other table: a migration that makes such a table anew
would fail.

A migration that alters `Message` on SQLite makes the table anew and loses the triggers, so it must
end with another `SearchIndex()`, and so must one after a change of a table here.
"""

# ruff: noqa: S608  (every statement here is made of constants)

from collections.abc import Mapping

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from chatcore.search import postgresql_index
from chatcore.search.tables import FILE_TABLE, INDEXES, MAX_FILE_CHARS, STEM_TABLE, TABLE

_OPTIONS = "detail=none, columnsize=0"
_STEM_STATEMENT = (
    "CREATE VIRTUAL TABLE {table} USING fts5"
    f"(content, content='', tokenize='porter unicode61 remove_diacritics 2', {_OPTIONS})"
)
SQLITE_TABLES = {
    TABLE: (
        f"CREATE VIRTUAL TABLE {TABLE} USING fts5(content, content='chatcore_message',"
        f" content_rowid='id', tokenize='trigram', {_OPTIONS})"
    ),
    STEM_TABLE: _STEM_STATEMENT.format(table=STEM_TABLE),
    FILE_TABLE: _STEM_STATEMENT.format(table=FILE_TABLE),
}
# Tool calls are indexed by their names and arguments, and not by ids and keys.
_CALLS = """
    CASE WHEN {row}.tool_calls = '[]' THEN '' ELSE coalesce((
        SELECT group_concat(
            ' ' || json_extract(value, '$.name') || ' ' || json_extract(value, '$.arguments'), '')
        FROM json_each({row}.tool_calls)), '') END
"""
_MARK = "'session' || {row}.session_id || ' '"  # no word of a text is equal to it by chance
_STEMS = f"{_MARK} || {{row}}.content || {_CALLS}"
_FILE_STEMS = f"{_MARK} || {{row}}.name || ' ' || substr({{row}}.text, 1, {MAX_FILE_CHARS})"
_DELETE_MESSAGE = f"""
    INSERT INTO {TABLE}({TABLE}, rowid, content) VALUES ('delete', old.id, old.content);
    INSERT INTO {STEM_TABLE}({STEM_TABLE}, rowid, content)
    VALUES ('delete', old.id, {_STEMS.format(row="old")});
"""
_INSERT_MESSAGE = f"""
    INSERT INTO {TABLE}(rowid, content) VALUES (new.id, new.content);
    INSERT INTO {STEM_TABLE}(rowid, content) VALUES (new.id, {_STEMS.format(row="new")});
"""
_DELETE_FILE = f"""
    INSERT INTO {FILE_TABLE}({FILE_TABLE}, rowid, content)
    VALUES ('delete', old.message_id, {_FILE_STEMS.format(row="old")});
"""
_INSERT_FILE = f"""
    INSERT INTO {FILE_TABLE}(rowid, content)
    VALUES (new.message_id, {_FILE_STEMS.format(row="new")});
"""
_IS_OLD_FILE = "old.message_id IS NOT NULL AND old.kind = 'file' AND old.text <> ''"
_IS_NEW_FILE = "new.message_id IS NOT NULL AND new.kind = 'file' AND new.text <> ''"
# Name, event, condition and statements of each trigger. Status and pins of messages change often;
# only a changed text is indexed again.
_TRIGGERS = (
    (f"{TABLE}_insert", "INSERT ON chatcore_message", "TRUE", _INSERT_MESSAGE),
    (f"{TABLE}_delete", "DELETE ON chatcore_message", "TRUE", _DELETE_MESSAGE),
    (
        f"{TABLE}_update",
        "UPDATE OF content, tool_calls ON chatcore_message",
        "old.content IS NOT new.content OR old.tool_calls IS NOT new.tool_calls",
        _DELETE_MESSAGE + _INSERT_MESSAGE,
    ),
    (f"{FILE_TABLE}_insert", "INSERT ON chatcore_attachment", _IS_NEW_FILE, _INSERT_FILE),
    (f"{FILE_TABLE}_delete", "DELETE ON chatcore_attachment", _IS_OLD_FILE, _DELETE_FILE),
    (
        f"{FILE_TABLE}_update",
        "UPDATE OF message_id ON chatcore_attachment",
        f"old.message_id IS NULL AND {_IS_NEW_FILE}",
        _INSERT_FILE,
    ),
)
_FILL_STATEMENTS = (
    f"INSERT INTO {TABLE}({TABLE}) VALUES ('rebuild')",
    f"INSERT INTO {STEM_TABLE}({STEM_TABLE}) VALUES ('delete-all')",
    f"INSERT INTO {FILE_TABLE}({FILE_TABLE}) VALUES ('delete-all')",
    f"INSERT INTO {STEM_TABLE}(rowid, content)"
    f" SELECT id, {_STEMS.format(row='message')} FROM chatcore_message message",
    f"INSERT INTO {FILE_TABLE}(rowid, content)"
    f" SELECT message_id, {_FILE_STEMS.format(row='file')} FROM chatcore_attachment file"
    " WHERE message_id IS NOT NULL AND kind = 'file' AND text <> '' ORDER BY message_id",
)
# Two segments of a size are merged at once: less room and faster searches for more writing.
_MERGE_STATEMENTS = tuple(
    f"INSERT INTO {table}({table}, rank) VALUES ('automerge', 2)" for table in INDEXES
)


class SearchIndex(migrations.operations.base.Operation):
    """A migration operation that creates the index if it is missing or another, and fills it."""

    reduces_to_sql = False
    reversible = True

    def state_forwards(self, app_label: str, state: object) -> None:
        """Change nothing: the index belongs to no model."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: object,
        to_state: object,
    ) -> None:
        """Create the index on SQLite and PostgreSQL; other databases search without one."""
        if schema_editor.connection.vendor == "sqlite":
            fill_sqlite_tables(schema_editor)
        elif schema_editor.connection.vendor == "postgresql":
            postgresql_index.create_tables(schema_editor)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: object,
        to_state: object,
    ) -> None:
        """Drop the index."""
        if schema_editor.connection.vendor == "postgresql":
            postgresql_index.drop_tables(schema_editor)
        if schema_editor.connection.vendor != "sqlite":
            return
        for trigger, *_rest in _TRIGGERS:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for table in INDEXES:
            schema_editor.execute(f"DROP TABLE IF EXISTS {table}")

    def describe(self) -> str:
        """Return the line that `migrate` shows."""
        return "Index the words of all messages"


class OwnersInIndex(migrations.operations.base.Operation):
    """An operation that gives PostgreSQL's index terms of owners. Needs `atomic = False`."""

    reduces_to_sql = False
    reversible = True

    def state_forwards(self, app_label: str, state: object) -> None:
        """Change nothing: the index belongs to no model."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *_states: object
    ) -> None:
        """Build the tables of stems again, unless they have the terms."""
        if schema_editor.connection.vendor == "postgresql":
            postgresql_index.mark_owners(schema_editor)

    def database_backwards(self, *_arguments: object) -> None:
        """Leave the tables in place. The former code does not look at the terms."""

    def describe(self) -> str:
        """Return the line that `migrate` shows."""
        return "Index whose messages they are"


def fill_sqlite_tables(
    schema_editor: BaseDatabaseSchemaEditor, statements: Mapping[str, str] = SQLITE_TABLES
) -> None:
    """Create the virtual tables by these statements unless they are there, and fill them."""
    for table, statement in statements.items():
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT sql FROM sqlite_master WHERE name = %s", [table])
            stored_statement = cursor.fetchone()
        if stored_statement != (statement,):
            schema_editor.execute(f"DROP TABLE IF EXISTS {table}")
            schema_editor.execute(statement)
    for trigger, event, condition, body in _TRIGGERS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        schema_editor.execute(
            f"CREATE TRIGGER {trigger} AFTER {event} WHEN {condition} BEGIN {body} END"
        )
    for statement in (*_FILL_STATEMENTS, *_MERGE_STATEMENTS):
        schema_editor.execute(statement)
