"""The commands of the benchmarks that need a database."""

import shutil
import sys
from collections.abc import Iterator

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from chatcore.base.runner import turn_runner
from measure.benchmarks import (
    claims,
    compaction_pass,
    disk_space,
    first_token,
    long_chat,
    pure,
    requests,
    sample_sessions,
    sse,
    streaming,
    turn_costs,
)
from measure.benchmarks.browser_stage import open_stage
from measure.benchmarks.timing import Row, format_table
from tests.support.scripted_model import ScriptedModel


def run_command(command: str) -> int:
    """Measure in a new database and return 0 when every value is within its limit."""
    if command == "claims":
        return claims.main()
    if "sqlite3" not in settings.DATABASES["default"]["ENGINE"]:
        print(
            "The benchmarks measure against raw SQLite: unset CHATCORE_DATABASE_URL.",
            file=sys.stderr,
        )
        return 2
    try:
        call_command("migrate", verbosity=0)
        call_command("createcachetable", verbosity=0)
        if command == "sse":
            return sse.main()
        rows = list(_measure_pages() if command == "web" else _measure_server())
    finally:
        turn_runner.stop()
        connections.close_all()
        shutil.rmtree(settings.DATA_DIR, ignore_errors=True)
    print(format_table(rows))
    return 0 if all(row.is_within_limit for row in rows) else 1


def _measure_server() -> Iterator[Row]:
    yield from pure.measure_rows()
    with ScriptedModel() as scripted:
        model = sample_sessions.create_model(scripted.base_url)
        short = sample_sessions.create_conversation(1_000, model)
        long = sample_sessions.create_conversation(100_000, model)
        yield from requests.measure_rows(short, long)
        yield from turn_costs.measure_rows(scripted.base_url)
        yield from compaction_pass.measure_rows(scripted)
        newest = sample_sessions.create_conversation(2, model)
        yield from first_token.measure_rows(scripted, newest)
        yield from disk_space.measure_rows(scripted, model)


def _measure_pages() -> Iterator[Row]:
    with open_stage() as stage:
        yield from long_chat.measure_rows(stage)
        yield from streaming.measure_rows(stage)
