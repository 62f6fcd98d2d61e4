"""Create the search index on PostgreSQL: trigrams of the messages, and tables of their stems.

The stems stand in tables of their own, which triggers fill. As an index of an expression they would
be computed again whenever the planner takes another way to the rows, and ANALYZE would compute them
too. Like SQLite's, each vector has a term for its session, and says nothing of places.

A search has to see new rows at once, and whatever an index has not sorted in yet is read through by
each of them: the list of those is off for stems and short for trigrams.
"""

# ruff: noqa: S608  (every statement here is made of constants)

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from chatcore.search.tables import FILE_TABLE, INDEXES, MAX_FILE_CHARS, STEM_TABLE, TABLE

MAX_RANK_CHARS = 50_000  # of a message; the tsvector of a longer text could exceed its limit
PENDING_LIST_KB = 256
COPIED_ROWS = 20_000  # of a table that is built again, in one transaction

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
    """
    CREATE OR REPLACE FUNCTION chatcore_owner_mark(session uuid) RETURNS tsvector
    LANGUAGE sql STABLE AS $$
        SELECT array_to_tsvector(ARRAY['owner:' || owner_id])
        FROM chatcore_session WHERE id = session
    $$
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
            VALUES (new.id, {message_id}, new.session_id,
                {vector} || chatcore_owner_mark(new.session_id))
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
_SWAP_STATEMENTS = (
    "DROP FUNCTION {new}_change CASCADE",
    "DROP TABLE {name}",
    "ALTER TABLE {new} RENAME TO {name}",
    "ALTER INDEX {new}_terms RENAME TO {name}_terms",
    "ALTER INDEX {new}_pkey RENAME TO {name}_pkey",
)
# The rows are locked until they are copied, so that one that is deleted meanwhile goes from both.
_COPY_STATEMENT = """
    WITH old AS (
        SELECT * FROM {name} WHERE id > %s ORDER BY id LIMIT {rows} FOR SHARE
    ), copied AS (
        INSERT INTO {new} (id, message_id, session_id, stems)
        SELECT old.id, old.message_id, old.session_id,
            old.stems || array_to_tsvector(ARRAY['owner:' || session.owner_id])
        FROM old JOIN chatcore_session AS session ON session.id = old.session_id
        ON CONFLICT (id) DO NOTHING
    )
    SELECT id FROM old ORDER BY id DESC LIMIT 1
"""
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


def mark_owners(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Build tables of stems again, with a term for the owner, while everybody reads and writes.

    Each new table is filled beside the old one and takes its place in a short transaction. What an
    interrupted attempt left is built again. Must not run inside a transaction.
    """
    _run(schema_editor, *_FUNCTIONS)
    for table in _STEM_TABLES:
        if "owner_mark" not in _read_function(schema_editor.connection, f"{table.name}_change"):
            _rebuild_table(schema_editor, table)


def _rebuild_table(schema_editor: BaseDatabaseSchemaEditor, table: _StemTable) -> None:
    new = replace(table, name=f"{table.name}_new")
    _run(
        schema_editor,
        f"DROP FUNCTION IF EXISTS {new.name}_change CASCADE",
        f"DROP TABLE IF EXISTS {new.name}",
    )
    with transaction.atomic(schema_editor.connection.alias):
        _run(schema_editor, *_build_table_statements(new))
    last_id: int | UUID | None = 0 if "bigint" in table.key else UUID(int=0)
    while last_id is not None:
        last_id = _copy_rows(schema_editor.connection, table.name, new.name, last_id)
    _run(
        schema_editor,
        f"CREATE INDEX CONCURRENTLY {new.name}_terms ON {new.name} USING gin (stems)"
        " WITH (fastupdate = off)",
        f"ANALYZE {new.name}",
    )
    with transaction.atomic(schema_editor.connection.alias):
        swaps = [swap.format(name=table.name, new=new.name) for swap in _SWAP_STATEMENTS]
        _run(schema_editor, *swaps, _build_trigger_function(table))


def _copy_rows(
    connection: BaseDatabaseWrapper, name: str, new_name: str, last_id: int | UUID
) -> int | UUID | None:
    """Copy the rows after `last_id`, and return the id of the last one, or None."""
    statement = _COPY_STATEMENT.format(name=name, new=new_name, rows=COPIED_ROWS)
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        cursor.execute(statement, [last_id])
        row = cursor.fetchone()
    return row[0] if row else None


def _create_table(schema_editor: BaseDatabaseSchemaEditor, table: _StemTable) -> None:
    name = table.name
    _run(
        schema_editor,
        *_build_table_statements(table),
        f"INSERT INTO {name} (id, message_id, session_id, stems)"
        f" SELECT source.id, {table.message_id.format(row='source')}, source.session_id,"
        f" {table.vector.format(row='source')} || chatcore_owner_mark(source.session_id)"
        f" FROM {table.source} AS source WHERE {table.condition.format(row='source')}",
        f"CREATE INDEX {name}_terms ON {name} USING gin (stems) WITH (fastupdate = off)",
        f"ANALYZE {name}",
    )


def _build_table_statements(table: _StemTable) -> list[str]:
    """Return what creates a table and the triggers that fill it."""
    name = table.name
    return [
        _CREATE_TABLE.format(table=name, key=table.key),
        _build_trigger_function(table),
        *(
            f"CREATE TRIGGER {name}_{number} AFTER {event} ON {table.source}"
            f" FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}_change()"
            for number, (event, condition) in enumerate(table.events.items())
        ),
    ]


def _build_trigger_function(table: _StemTable) -> str:
    return _TRIGGER_FUNCTION.format(
        table=table.name,
        condition=table.condition.format(row="new"),
        message_id=table.message_id.format(row="new"),
        vector=table.vector.format(row="new"),
    )


def _read_function(connection: BaseDatabaseWrapper, name: str) -> str:
    """Return the text of a function, empty if there is none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = %s", [name])
        row = cursor.fetchone()
    return row[0] if row else ""


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
