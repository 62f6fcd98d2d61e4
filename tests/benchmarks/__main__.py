"""python -m tests.benchmarks [sse|web]: makes a database of its own, prints the table, and exits 1 when something is over its limit."""

import os
import shutil
import sys
from collections.abc import Iterator

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402

from chatcore.turns.runner import turn_runner  # noqa: E402
from tests.benchmarks import (  # noqa: E402
    first_token,
    long_chat,
    pure,
    requests,
    sse,
    stored,
    streaming,  # noqa: E402, RUF100
)
from tests.benchmarks.stage import open_stage  # noqa: E402
from tests.benchmarks.timing import (  # noqa: E402
    Row,
    format_table,  # noqa: E402, RUF100
)
from tests.support.scripted_model import ScriptedModel  # noqa: E402


def main() -> int:
    """Measure everything; 0 when all is under its limits."""
    if "sqlite3" not in settings.DATABASES["default"]["ENGINE"]:
        print(
            "The benchmarks measure against raw SQLite: unset CHATCORE_DATABASE_URL.",
            file=sys.stderr,
        )
        return 2
    try:
        if sys.argv[1:] == ["sse"]:
            _migrated()
            return sse.main()
        rows = list(_in_the_browser() if sys.argv[1:] == ["web"] else _measured())
    finally:
        turn_runner.stop()
        connections.close_all()
        shutil.rmtree(settings.DATA_DIR, ignore_errors=True)
    print(format_table(rows))
    return 0 if all(row.is_within_limit for row in rows) else 1


def _measured() -> Iterator[Row]:
    _migrated()
    yield from pure.measure_rows()
    with ScriptedModel() as scripted:
        using = stored.create_model(scripted.base_url)
        short, long = (
            stored.create_conversation(1_000, using),
            stored.create_conversation(100_000, using),
        )
        yield from requests.measure_rows(short, long)
        yield from first_token.rows(scripted, stored.create_conversation(2, using))


def _in_the_browser() -> Iterator[Row]:
    _migrated()
    with open_stage() as ready:
        yield from long_chat.measure_rows(ready)
        yield from streaming.measure_rows(ready)


def _migrated() -> None:
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)


if __name__ == "__main__":
    sys.exit(main())
