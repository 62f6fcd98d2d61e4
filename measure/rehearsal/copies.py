"""Copy one real conversation many times, by statements that the database runs alone.

The product makes the conversation, so each table has the rows that it writes. The copies differ in
their keys and in the texts of their messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from chatcore.models.statements import fetch_rows
from measure.rehearsal.texts import TEXTS, build_texts

KEY_STEP = 1_000_000  # between the keys of a copy's rows and those of the next one
BATCH = 5_000  # copies made by one statement
EVENT_SHARE = 30  # one copy of so many is young enough to have its events

# A copy's message has another text than those beside it, and than most of other copies.
TEXT_OF_ROW = "(n::bigint * 7919 + row.{} * 31) % {}"

# Tables of a session, those first that others point at.
TABLES = (
    "chatcore_session",
    "chatcore_turn",
    "chatcore_message",
    "chatcore_message_stems",
    "chatcore_sentrequest",
    "chatcore_senttext",
    "chatcore_sessionevent",
    "chatcore_contextrevision",
    "chatcore_usagesum",
    "compaction_compactionrun",
    "compaction_modelcall",
    "compaction_ledgerline",
    "compaction_summaryleaf",
)


@dataclass(frozen=True)
class Column:
    """A column, and the SQL of its value in the copy with the number `n`."""

    name: str
    copied: str


def copy_session(session_id: UUID, copies: int, owners: int) -> Iterator[str]:
    """Copy a session and yield what is being done. The copies are spread over the owners.

    Indexes other than the primary keys are dropped before, and made again after.
    """
    indexes = _list_indexes()
    _run(
        "SET session_replication_role = replica",  # no triggers, and no checks of foreign keys
        "SET maintenance_work_mem = '2GB'",
        "SET synchronous_commit = off",
        *(f"DROP INDEX {name}" for name, _ in indexes),
    )
    _create_owners(owners)
    _create_texts()
    for table in TABLES:
        yield f"copies the rows of {table}"
        share = EVENT_SHARE if table == "chatcore_sessionevent" else 1
        _keep_sample(table, session_id)
        for first in range(1, copies + 1, BATCH):
            last = min(first + BATCH - 1, copies)
            _run(_build_copy(table, owners, first, last, share))
    for name, definition in indexes:
        yield f"makes the index {name}"
        _run(definition)
    yield "reads the statistics"
    _run("SET session_replication_role = DEFAULT", "VACUUM ANALYZE")


def _run(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _list_indexes() -> list[tuple[str, str]]:
    """Return name and definition of each index that stands for no constraint."""
    return fetch_rows(
        """
        SELECT indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'public' AND tablename = ANY(%s)
            AND indexname NOT IN (SELECT conname FROM pg_constraint)
        """,
        [list(TABLES)],
    )


def _create_owners(owners: int) -> None:
    _run(
        f"""
        INSERT INTO auth_user (id, username, password, email, first_name, last_name, is_active,
            is_staff, is_superuser, date_joined)
        SELECT {KEY_STEP} + n, 'person' || n, '', '', '', '', true, false, false, now()
        FROM generate_series(0, {owners - 1}) AS n
        """
    )


def _create_texts() -> None:
    texts = build_texts()
    _run("CREATE TEMPORARY TABLE sample_text (number int PRIMARY KEY, words text, stems tsvector)")
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO sample_text VALUES (%s, %s, strip(chatcore_stems(%s)))",
            [(number, text, text) for number, text in enumerate(texts)],
        )
    _run("ANALYZE sample_text")


def _keep_sample(table: str, session_id: UUID) -> None:
    """Put the rows of the session that is copied where no copies are added to them."""
    names = {name for name, _ in _list_columns(table)}
    key = "session_id" if "session_id" in names else "session" if "session" in names else "id"
    source = f"{key} = '{session_id}'"
    if table == "compaction_modelcall":
        source = (
            f"run_id IN (SELECT id FROM compaction_compactionrun WHERE session_id = '{session_id}')"
        )
    _run(
        "DROP TABLE IF EXISTS sample_row",
        f"CREATE TEMPORARY TABLE sample_row AS SELECT * FROM {table} WHERE {source}",
        "ANALYZE sample_row",
    )


def _list_columns(table: str) -> list[tuple[str, str]]:
    """Return name and type of each column."""
    return fetch_rows(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = %s ORDER BY ordinal_position",
        [table],
    )


def _build_copy(table: str, owners: int, first: int, last: int, share: int) -> str:
    columns = [Column(name, _copy_value(name, kind, owners)) for name, kind in _list_columns(table)]
    texts = ""
    if table in ("chatcore_message", "chatcore_message_stems"):
        number = TEXT_OF_ROW.format("id", TEXTS)
        texts = f"JOIN sample_text AS sample ON sample.number = {number}"
    return f"""
        INSERT INTO {table} ({", ".join(f'"{column.name}"' for column in columns)})
        SELECT {", ".join(column.copied for column in columns)}
        FROM generate_series({first}, {last}) AS n CROSS JOIN sample_row AS row {texts}
        WHERE n % {share} = 0
    """


def _copy_value(name: str, kind: str, owners: int) -> str:
    value = f'row."{name}"'
    if name == "owner_id":
        return f"{KEY_STEP} + n % {owners}"
    if kind == "uuid":
        return f"md5({value}::text || n)::uuid"
    if kind == "bigint" and (name in ("id", "message") or name.endswith("_id")):
        return value if name in ("model_id", "actor_id") else f"{value} + n::bigint * {KEY_STEP}"
    if name == "content":
        return "sample.words"
    if name == "external_id":
        return "NULL"
    if name == "stems":
        return (
            "sample.stems || array_to_tsvector(ARRAY['session' ||"
            " replace(md5(row.session_id::text || n)::uuid::text, '-', ''),"
            f" 'owner:' || ({KEY_STEP} + n % {owners})])"
        )
    if kind == "timestamp with time zone":
        return f"{value} - n * interval '20 seconds'"
    return value
