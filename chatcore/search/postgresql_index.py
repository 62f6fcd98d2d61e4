"""Create the search index on PostgreSQL: trigrams of the messages, and tables of their stems.

The stems stand in tables of their own, which triggers fill. As an index of an expression they would
be computed again whenever the planner takes another way to the rows, and ANALYZE would compute them
too. Like SQLite's, each vector has a term for its session, and says nothing of places.

A search has to see new rows at once, and whatever an index has not sorted in yet is read through by
each of them: the list of those is off for stems and short for trigrams.
"""

# ruff: noqa: S608  (every statement here is made of constants)

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from chatcore.search.tables import FILE_TABLE, INDEXES, MAX_FILE_CHARS, STEM_TABLE, TABLE

MAX_RANK_CHARS = 50_000  # of a message; the tsvector of a longer text could exceed its limit
PENDING_LIST_KB = 256

# Words are separated as on SQLite, and written without diacritics. The parser of PostgreSQL would
# take a path or an address as one word.
_SEPARATORS = "!\"#$&''()*+,-./:;<=>?@[\\]^_`{|}~"
_LETTERS = "ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿ"
_PLAIN_LETTERS = "AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyy"
_FUNCTIONS = (
    # A search of former versions asks for its costs.
    f"""
    CREATE OR REPLACE FUNCTION chatcore_stems(words text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
    BEGIN
        RETURN to_tsvector('english', translate(words, '{_SEPARATORS}{_LETTERS}',
            '{" " * len(_SEPARATORS.replace("''", "'"))}{_PLAIN_LETTERS}'));
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION chatcore_vector(session_id uuid, words text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
    BEGIN
        RETURN array_to_tsvector(ARRAY['session' || replace(session_id::text, '-', '')])
            || strip(chatcore_stems(words));
    END $$
    """,
)
_MESSAGE_VECTOR = f"""
    chatcore_vector({{row}}.session_id, left({{row}}.content ||
        CASE WHEN {{row}}.tool_calls = '[]'::jsonb THEN '' ELSE ' ' || {{row}}.tool_calls::text END,
        {MAX_RANK_CHARS}))
"""
_FILE_VECTOR = f"""
    chatcore_vector({{row}}.session_id, left({{row}}.name || ' ' || {{row}}.text, {MAX_FILE_CHARS}))
"""
_IS_FILE = "{row}.message_id IS NOT NULL AND {row}.kind = 'file' AND {row}.text <> ''"
_CREATE_TABLE = """
    CREATE TABLE {table} ({key}, message_id bigint NOT NULL, session_id uuid NOT NULL,
        stems tsvector NOT NULL)
"""
_TRIGGER_FUNCTION = """
    CREATE OR REPLACE FUNCTION {table}_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP <> 'INSERT' THEN
            DELETE FROM {table} WHERE id = old.id;
        END IF;
        IF TG_OP <> 'DELETE' AND {condition} THEN
            INSERT INTO {table} (id, message_id, session_id, stems)
            VALUES (new.id, {message_id}, new.session_id, {vector})
            ON CONFLICT (id) DO UPDATE SET stems = excluded.stems;
        END IF;
        RETURN NULL;
    END $$
"""


@dataclass(frozen=True, kw_only=True)
class _StemTable:
    """A table of stems, the table that it is made from, and what of each row is in it.

    `events` are those of the triggers, each with its condition: only a changed text is indexed
    again.
    """

    name: str
    source: str
    key: str
    message_id: str
    condition: str
    vector: str
    events: Mapping[str, str]


_STEM_TABLES = (
    _StemTable(
        name=STEM_TABLE,
        source="chatcore_message",
        key="id bigint PRIMARY KEY",
        message_id="{row}.id",
        condition="TRUE",
        vector=_MESSAGE_VECTOR,
        events={
            "INSERT": "TRUE",
            "DELETE": "TRUE",
            "UPDATE OF content, tool_calls": (
                "old.content IS DISTINCT FROM new.content"
                " OR old.tool_calls IS DISTINCT FROM new.tool_calls"
            ),
        },
    ),
    _StemTable(
        name=FILE_TABLE,
        source="chatcore_attachment",
        key="id uuid PRIMARY KEY",
        message_id="{row}.message_id",
        condition=_IS_FILE,
        vector=_FILE_VECTOR,
        events={
            "INSERT": _IS_FILE.format(row="new"),
            "DELETE": _IS_FILE.format(row="old"),
            "UPDATE OF message_id": "old.message_id IS DISTINCT FROM new.message_id",
        },
    ),
)
_TRIGRAMS = (
    f"CREATE INDEX IF NOT EXISTS {TABLE} ON chatcore_message"
    " USING gin (upper(content) gin_trgm_ops)",
    f"ALTER INDEX {TABLE} SET (gin_pending_list_limit = {PENDING_LIST_KB})",
)


def create_tables(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create what is missing of the index, and fill it with the messages that there are."""
    _run(schema_editor, "CREATE EXTENSION IF NOT EXISTS pg_trgm", *_FUNCTIONS, *_TRIGRAMS)
    for table in _STEM_TABLES:
        if _find_kind(schema_editor.connection, table.name) != "r":
            _drop_relation(schema_editor, table.name)
            _create_table(schema_editor, table)


def drop_tables(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Drop the index."""
    for table in _STEM_TABLES:
        _run(schema_editor, f"DROP FUNCTION IF EXISTS {table.name}_change CASCADE")
    for name in INDEXES:
        _drop_relation(schema_editor, name)


def _create_table(schema_editor: BaseDatabaseSchemaEditor, table: _StemTable) -> None:
    name = table.name
    function = _TRIGGER_FUNCTION.format(
        table=name,
        condition=table.condition.format(row="new"),
        message_id=table.message_id.format(row="new"),
        vector=table.vector.format(row="new"),
    )
    _run(
        schema_editor,
        _CREATE_TABLE.format(table=name, key=table.key),
        function,
    )
    for number, (event, condition) in enumerate(table.events.items()):
        _run(
            schema_editor,
            f"CREATE TRIGGER {name}_{number} AFTER {event} ON {table.source}"
            f" FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}_change()",
        )
    _run(
        schema_editor,
        f"INSERT INTO {name} (id, message_id, session_id, stems)"
        f" SELECT source.id, {table.message_id.format(row='source')}, source.session_id,"
        f" {table.vector.format(row='source')} FROM {table.source} AS source"
        f" WHERE {table.condition.format(row='source')}",
        f"CREATE INDEX {name}_terms ON {name} USING gin (stems) WITH (fastupdate = off)",
        f"ANALYZE {name}",
    )


def _drop_relation(schema_editor: BaseDatabaseSchemaEditor, name: str) -> None:
    """Drop a table or an index, whichever has the name: the stems were indexes once."""
    kind = _find_kind(schema_editor.connection, name)
    if kind is not None:
        _run(schema_editor, f"DROP {'TABLE' if kind == 'r' else 'INDEX'} {name}")


def _find_kind(connection: BaseDatabaseWrapper, name: str) -> str | None:
    """Return `r` for a table, `i` for an index, and None if nothing has the name."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", [name])
        row = cursor.fetchone()
    return row[0] if row else None


def _run(schema_editor: BaseDatabaseSchemaEditor, *statements: str) -> None:
    for statement in statements:
        schema_editor.execute(statement, params=None)
