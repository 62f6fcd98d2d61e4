"""What web processes may open is compared with what the database's server allows."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from chatcore.models import ServingProcess
from chatcore.serving import connections, processes

POOL = {"min_size": 2, "max_size": 20}
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no connections"),
]


@pytest.fixture(autouse=True)
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the setting, and leave no pool behind: Django keeps one for each alias."""
    pooled: Any = connection
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "pool", POOL)
    yield
    pooled.close_pool()


def test_as_many_as_fit_are_fine_and_one_more_is_too_much() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW max_connections")
        allowed = int(cursor.fetchone()[0]) - 3
    fitting = allowed // 32
    assert connections.find_shortage(fitting) == ""
    assert re.match(
        rf"{fitting + 1} web processes may open {32 * (fitting + 1)} connections \(32 each\)",
        connections.find_shortage(fitting + 1),
    )


def test_check_counts_the_web_processes_that_live(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(100):
        processes.record_process(ServingProcess.Kind.WEB, f"machine:{number}")
    call_command("check", databases=["default"])
    assert "chatcore.W003) 100 web processes may open 3200" in capsys.readouterr().err


def test_without_a_pool_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(connection.settings_dict["OPTIONS"], "pool")
    assert connections.find_shortage(1000) == ""
