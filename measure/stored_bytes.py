"""Weigh what is stored: python -m measure.stored_bytes [--turns 1000].

The product holds talks of 50 turns in an empty database, and makes a summary of each. The table
says for each kind of rows what a thousand turns leave, with their indexes. CHATCORE_DATABASE_URL
names an empty PostgreSQL database; without it, it is a new SQLite file. PostgreSQL also says which
share of its updates touched no index (HOT).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import cycle

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "measure.benchmarks.settings")
os.environ.setdefault("CHATCORE_TURNS_PER_MINUTE", "1000000")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402

from chatcore.base.runner import turn_runner  # noqa: E402
from chatcore.models import Session  # noqa: E402
from chatcore.models.statements import fetch_rows  # noqa: E402
from compaction.runs import engine  # noqa: E402
from measure.benchmarks import sample_sessions  # noqa: E402
from measure.benchmarks.sample_messages import CODE, SENTENCE, TABLE, list_ten_messages  # noqa: E402
from tests.support.database import move_connections  # noqa: E402
from tests.support.scripted_model import ScriptedModel  # noqa: E402
from tests.support.scripted_wire import Reply  # noqa: E402

TURNS = 50  # of a talk
SUMMARY = CODE + TABLE + SENTENCE
OTHER = "all other tables"
INDEXES = ("chatcore_message_stems", "chatcore_message_words")  # of SQLite, which do not count rows
TABLES = (
    "chatcore_session",
    "chatcore_turn",
    "chatcore_message",
    "chatcore_message_stems",
    "chatcore_message_words",
    "chatcore_sessionevent",
    "chatcore_sentrequest",
    "chatcore_senttext",
    "chatcore_contextrevision",
    "compaction_compactionrun",
    "compaction_modelcall",
)
POSTGRESQL_SQL = """
    SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
# The shadow tables of an index of the search belong to it.
SQLITE_SQL = """
    SELECT coalesce(schema.tbl_name, pages.name), sum(pgsize * (schema.type = 'table')),
        sum(pgsize * (schema.type = 'index'))
    FROM dbstat pages LEFT JOIN sqlite_master schema ON schema.name = pages.name
    WHERE aggregate = 1 GROUP BY 1
"""
UPDATES_SQL = """
    SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
    WHERE n_tup_upd > 0 ORDER BY n_tup_upd DESC
"""


def main() -> int:
    """Hold the talks, and print what they left."""
    parser = argparse.ArgumentParser(prog="python -m measure.stored_bytes")
    parser.add_argument("--turns", type=int, default=1_000)
    turns = parser.parse_args().turns
    setup_test_environment()  # Django's client asks as the host `testserver`
    with tempfile.TemporaryDirectory() as folder:
        if connection.vendor == "sqlite":
            move_connections(f"{folder}/bytes.sqlite3")
        call_command("migrate", verbosity=0)
        call_command("createcachetable", verbosity=0)
        empty = weigh_tables()
        try:
            hold_talks(turns // TURNS)
        finally:
            turn_runner.stop()
        print("\n".join(format_rows(empty, weigh_tables(), turns)))
    return 0


def hold_talks(count: int) -> None:
    """Hold so many talks, and make two summaries of each."""
    texts = cycle(str(fields["content"]) for fields in list_ten_messages())
    with ScriptedModel() as scripted:
        scripted.default = lambda request: Reply(
            text=SUMMARY if "<transcript>" in str(request["messages"]) else next(texts)
        )
        model = sample_sessions.create_model(scripted.base_url, window=8_000)
        user = sample_sessions.get_user()
        api = APIClient()
        api.force_authenticate(user)
        for _ in range(count):
            session = Session.objects.create(owner=user, model=model, auto_compact=False)
            for number in range(TURNS):
                question = {"content": f"{number}. How do I keep only the newest messages?"}
                answer = api.post(f"/api/v1/sessions/{session.pk}/messages", question)
                assert answer.status_code == 201, answer.content
            for seq in (TURNS, 2 * TURNS - 10):
                run = engine.compact_now(session.pk, trigger="manual", up_to_seq=seq)
                assert run.status == "applied", run.reason


def weigh_tables() -> dict[str, tuple[int, int]]:
    """Return the bytes of each table, and those of its indexes."""
    if connection.vendor == "sqlite":
        return _sum_up(fetch_rows(SQLITE_SQL, []))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return _sum_up(fetch_rows(POSTGRESQL_SQL, []))


def _sum_up(rows: list[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    sizes: dict[str, tuple[int, int]] = {}
    for name, table, indexes in rows:
        owners = [each for each in TABLES if name == each or name.startswith(f"{each}_")]
        key = max(owners, key=len, default=OTHER)
        old_table, old_indexes = sizes.get(key, (0, 0))
        sizes[key] = (old_table + (table or 0), old_indexes + (indexes or 0))
    return sizes


def format_rows(
    empty: dict[str, tuple[int, int]], full: dict[str, tuple[int, int]], turns: int
) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{connection.vendor}, {turns} turns; KB for a thousand turns"
    yield "| table | rows | KB | KB of indexes | bytes a row, all |"
    yield "|---|---:|---:|---:|---:|"
    total = 0
    for name in (*TABLES, OTHER):
        if name not in full:
            continue
        before = empty.get(name, (0, 0))
        table, indexes = full[name][0] - before[0], full[name][1] - before[1]
        total += table + indexes
        rows = 0
        if name not in (OTHER, *INDEXES):
            [(rows,)] = fetch_rows(f"SELECT count(*) FROM {name}", [])
        yield (
            f"| {name} | {rows:,} | {table / turns:,.0f} | {indexes / turns:,.0f}"
            f" | {(table + indexes) / max(rows, 1):,.0f} |"
        )
    yield f"| all | | {total / turns:,.0f} | | |"
    if connection.vendor == "postgresql":
        for name, updates, hot in fetch_rows(UPDATES_SQL, []):
            yield f"{name}: {updates / turns:.1f} updates a turn, {hot / updates:.0%} of them HOT"


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
