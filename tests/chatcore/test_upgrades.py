"""Upgrades: a database of release 0.2.0 keeps every row, and stays quick to ask.

A new database has never been at an older version, so each begins with one that was.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps as current_apps
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations.executor import MigrationExecutor

from chatcore.models import Message, Session
from chatcore.search import query as search_query
from compaction.models import FORGOTTEN_TEXT, CompactionRun
from tests.support.old_databases import open_old_database

RELEASE = ("chatcore", "0003_plain_help_texts")  # the newest migration of 0.2.0
TABLES = ("session", "turn", "message", "sessionevent", "contextrevision")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def released(transactional_db: None, tmp_path: Path) -> Iterator[Any]:
    """The models of the release, over its tables."""
    with open_old_database("22aa757", tmp_path):
        yield MigrationExecutor(connection).loader.project_state([RELEASE]).apps


def fill(released: Any) -> Any:
    """Store a row of every kind, as the release did; return the session."""
    owner = released.get_model("auth", "User").objects.create(username="bob")
    session = released.get_model("chatcore", "Session").objects.create(
        owner=owner, title="Birds", last_seq=2, message_count=1, last_event_seq=2
    )
    turn = session.turns.create(
        lease_until="2026-11-22T12:00:00Z", status="completed", idempotency_key="k"
    )
    asked = session.messages.create(seq=1, role="user", content="A plover?", turn=turn)
    again = session.messages.create(
        seq=2, role="user", content="A swordfish?", replaces=asked, turn=turn
    )
    asked.branch, asked.branch_after = uuid4(), 0
    asked.save()
    turn.question = again
    turn.replaces = asked
    turn.save()
    session.events.create(seq=1, name="turn.started", data={"turn": str(turn.pk)})
    session.events.create(seq=2, name="context.usage", data={"level": "ok"})
    session.revisions.create(version=1, summary="Birds.", source="compaction")
    return session


def read_rows(apps: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        name: list(apps.get_model("chatcore", name).objects.order_by("pk").values())
        for name in TABLES
    }


@pytest.mark.slow
def test_every_row_is_still_there_and_found(released: Any) -> None:
    session = fill(released)
    rows_before = read_rows(released)
    call_command("migrate", verbosity=0)
    rows_after = read_rows(current_apps)
    for name, rows in rows_before.items():
        assert len(rows_after[name]) == len(rows)
        for row, row_after in zip(rows, rows_after[name], strict=True):
            assert row.items() <= row_after.items(), name
    assert [hit.seq for hit in search_query.search_messages(session.pk, "SWORD")] == [2]


@pytest.mark.slow
def test_the_index_follows_what_is_written_after_the_upgrade(released: Any) -> None:
    session = fill(released)
    call_command("migrate", verbosity=0)
    Message.objects.filter(session_id=session.pk, seq=2).update(content="A halibut?")
    Message.objects.create(session_id=session.pk, seq=3, role="user", content="A trout?")

    def find(query: str) -> list[int]:
        return [hit.seq for hit in search_query.search_messages(session.pk, query)]

    assert [find("swordfish"), find("halibut"), find("trout")] == [[], [2], [3]]
    Session.objects.get(pk=session.pk).delete()
    assert find("trout") == []


@pytest.mark.slow
def test_a_run_tells_its_summaries_after_the_upgrade_and_what_was_forgotten_stays_so(
    transactional_db: None, tmp_path: Path
) -> None:
    with open_old_database("fc8fb5e", tmp_path):
        targets = [("chatcore", "0045_setup_entries"), ("compaction", "0023_switched_off_policies")]
        old_apps = MigrationExecutor(connection).loader.project_state(targets).apps
        owner = old_apps.get_model("auth", "User").objects.create(username="bob")
        session = old_apps.get_model("chatcore", "Session").objects.create(owner=owner)
        for version, summary, is_stale in ((1, "Birds.", False), (2, None, True)):
            session.revisions.create(
                version=version, summary=summary, stale=is_stale, source="compaction"
            )
        forgotten = old_apps.get_model("compaction", "CompactionRun").objects.create(
            session=session,
            trigger="manual",
            policy="oneclaw",
            status="applied",
            version_before=1,
            version_after=2,
            summary_before="Birds.",
            summary_after=FORGOTTEN_TEXT,
        )
        call_command("migrate", verbosity=0)
        run = CompactionRun.objects.get(pk=forgotten.pk)
        assert (run.summary_before, run.summary_after) == ("Birds.", FORGOTTEN_TEXT)
        assert run.state_after == {"forgotten": True}
        [loaded_run] = CompactionRun.objects.filter(session=session.pk).with_summaries()
        assert (loaded_run.summary_before, loaded_run.summary_after) == ("Birds.", FORGOTTEN_TEXT)


def list_index_columns(model: type[models.Model]) -> list[tuple[str, ...]]:
    """The columns of each index over all rows of a model, except those of single columns."""
    meta = model._meta
    return [
        tuple(name.lstrip("-") for name in index.fields)
        for index in (*meta.indexes, *meta.constraints)
        if isinstance(index, models.Index | models.UniqueConstraint) and index.condition is None
    ]


@pytest.mark.parametrize("name", TABLES)
def test_no_key_has_an_index_that_another_one_begins_with(name: str) -> None:
    model = current_apps.get_model("chatcore", name)
    firsts = {columns[0] for columns in list_index_columns(model)}
    doubled = [
        field.name for field in model._meta.fields if field.db_index and field.name in firsts
    ]
    assert not doubled
