"""A database that an older version filled: upgraded, it has every word, and the talk goes on."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from rest_framework.test import APIClient

from chatcore.base.threads import use_own_connection
from chatcore.models import Session
from models_registry.models import Provider
from tests.support.client_tool_requests import bring
from tests.support.compaction_sessions import summarize_or_chat
from tests.support.differences import find_difference
from tests.support.old_databases import (
    ENCRYPTION_KEY,
    RELEASES,
    TOKEN,
    TOO_OLD,
    create_database,
    open_old_database,
    read_answers,
    read_tables,
    use_database_name,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = [pytest.mark.program, pytest.mark.django_db(transaction=True)]
UPGRADED = "012ffea-0.3.0"
OURS = ("chatcore_", "compaction_", "models_registry_", "prompts_", "words_of_titles")
# What Django's own migrations write.
OTHER_TABLES = ("django_content_type", "auth_permission")
# What our migrations change on purpose: nobody had said that these models call no tools, and see no
# images.
INTENDED_CHANGES = [
    ("models_registry_aimodel", {"supports_tools": (False, None)}),
    ("models_registry_aimodel", {"supports_images": (False, None)}),
    (
        "models_registry_aimodel",
        {"supports_tools": (False, None), "supports_images": (False, None)},
    ),
]


@pytest.fixture(params=mark_others_slow(RELEASES))
def old(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    transactional_db: None,
    settings: LazySettings,
) -> Iterator[dict[str, Any]]:
    """What the API answered then, while its database is in use."""
    settings.CHATCORE = {**settings.CHATCORE, "KEY_ENCRYPTION_KEYS": [ENCRYPTION_KEY]}
    with open_old_database(request.param, tmp_path):
        yield read_answers(request.param)


@pytest.fixture
def alice() -> APIClient:
    return APIClient(headers={"Authorization": f"Bearer {TOKEN}"})


def read(alice: APIClient, path: str) -> Any:
    answer = alice.get(f"/api/v1/{path}")
    assert answer.status_code == 200, (path, answer.content)
    return answer.json()


def test_it_upgrades_with_every_row_and_word_and_the_talk_goes_on(
    old: dict[str, Any], alice: APIClient, scripted: ScriptedModel
) -> None:
    rows_before = read_tables()
    call_command("migrate", verbosity=0)
    check_rows(rows_before, read_tables())
    check_soundness()
    for path, answer in old["answers"].items():
        drop_what_is_private(answer)
        if path.startswith("search"):  # better ranked since then, and it finds more
            assert list_hits(answer) <= list_hits(read(alice, f"{path}&limit=100")), path
        else:
            assert find_difference(answer, read(alice, path), path) is None
    go_on(old["sessions"], alice, scripted)
    check_soundness()


def drop_what_is_private(answer: Any) -> None:
    """Remove what an export had once, and has no more: what providers remember of an answer."""
    for message in answer.get("messages", ()):
        message.pop("provider_data", None)


def list_hits(answer: Any) -> set[int]:
    return {hit["message"] for hit in answer["results"]}


def check_rows(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Every row is there, with the same values in all columns that still exist."""
    for table, rows in before.items():
        if table in OTHER_TABLES:
            continue
        assert rows.keys() <= after[table].keys(), table
        for key, row in rows.items():
            row_after = after[table][key]
            changes = {
                name: (value, row_after[name])
                for name, value in row.items()
                if name in row_after and row_after[name] != value
            }
            assert not changes or (table, changes) in INTENDED_CHANGES, (table, key, changes)


def check_soundness() -> None:
    executor = MigrationExecutor(connection)
    assert not executor.migration_plan(executor.loader.graph.leaf_nodes())
    out = StringIO()
    call_command("verify", stdout=out)
    assert out.getvalue().strip().endswith("0 violations"), out.getvalue()


def go_on(sessions: dict[str, str], alice: APIClient, scripted: ScriptedModel) -> None:
    """Talk on in each session, answer the turn that waits, and undo the summary."""
    Provider.objects.filter(name="scripted").update(base_url=scripted.base_url)
    scripted.default = summarize_or_chat(chat=Reply(text="Snow."))
    result = bring(alice, f"/api/v1/sessions/{sessions['weather']}", ("oslo", "It snows."))
    assert result.status_code == 201, result.content
    assert result.json()["assistant_message"]["content"] == "Snow."
    key = scripted.requests[-1].headers["authorization"]
    assert key == "Bearer the key of the old provider"
    scripted.default = summarize_or_chat(chat=Reply(text="A kiwi."))
    for session in sessions.values():
        url = f"/api/v1/sessions/{session}/messages"
        answer = alice.post(url, {"content": "Which bird has no wings?"})
        assert answer.status_code == 201, answer.content
        hits = read(alice, f"sessions/{session}/search?q=kiwi")["results"]
        assert ["kiwi" in hit["snippet"] for hit in hits] == [True]
    birds = Session.objects.get(pk=sessions["birds"])
    assert birds.compacted_summary
    assert birds.compacted_summary in str(scripted.requests[-len(sessions)].json)
    run = read(alice, f"sessions/{birds.pk}/compactions")["results"][0]
    assert alice.post(f"/api/v1/compactions/{run['id']}/rewind").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("app", mark_others_slow(["compaction", "models_registry", "chatcore"]))
def test_one_app_can_be_migrated_before_all_others(
    transactional_db: None, tmp_path: Path, app: str
) -> None:
    """It is not noted as applied before what it needs, which would end each later migration."""
    with open_old_database(UPGRADED, tmp_path):
        rows_before = read_tables()
        call_command("migrate", app, verbosity=0)
        call_command("migrate", verbosity=0)
        check_rows(rows_before, read_tables())
        check_soundness()


def test_a_new_database_is_as_an_upgraded_one(transactional_db: None, tmp_path: Path) -> None:
    new_schema = read_schema()
    assert "chatcore_message_stems" in str(new_schema)
    with open_old_database(UPGRADED, tmp_path):
        call_command("migrate", verbosity=0)
        assert find_difference(new_schema, read_schema(), "schema") is None


def test_a_database_from_before_the_kept_migrations_is_refused_as_it_is(
    transactional_db: None, tmp_path: Path
) -> None:
    with open_old_database(TOO_OLD, tmp_path):
        rows_before = read_tables()
        for command in ("migrate", "prepare"):
            with pytest.raises(CommandError, match=r"Upgrade to 0\.3\.0 first"):
                call_command(command)
        with pytest.raises(CommandError, match=r"Upgrade to 0\.3\.0 first"):
            call_command("check", databases=["default"])
        assert read_tables() == rows_before


@pytest.mark.slow
def test_all_tables_can_be_dropped_and_made_again(transactional_db: None, tmp_path: Path) -> None:
    new_schema = read_schema()
    with open_old_database(UPGRADED, tmp_path):
        call_command("migrate", verbosity=0)
        call_command("migrate", "models_registry", "zero", verbosity=0)
        assert not [name for name in read_schema() if "_cache" not in name]
        call_command("migrate", verbosity=0)
        assert find_difference(new_schema, read_schema(), "schema") is None
        check_soundness()


def read_schema() -> dict[str, Any]:
    """Return what makes each table, index, trigger and function of ours, by its name.

    SQLite moves a column that is altered to the end of its table, so the order is not compared. A
    database that PostgreSQL has restored tells conditions in other words.
    """
    with connection.cursor() as cursor:
        cursor.execute(SCHEMA_STATEMENTS[connection.vendor])
        rows = cursor.fetchall()
    return {
        name: sorted(" ".join(part.split()) for part in re.sub(UNSTABLE, " ", sql).split(","))
        for name, sql in ((name, _narrow_actors(name, sql)) for name, sql in rows)
        if any(prefix in name for prefix in OURS)
    }


def _narrow_actors(name: str, sql: str) -> str:
    """In 0.3.0 who asked for a revision was a wide number; now it has the type of users' keys."""
    return sql.replace("bigint", "integer") if "chatcore_contextrevision" in name else sql


UNSTABLE = r"::[a-z ]+(\[\])?|[()]"  # casts and brackets
SCHEMA_STATEMENTS = {
    "sqlite": "SELECT type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL",
    "postgresql": """
        SELECT 'column ' || table_name || ' ' || column_name, concat_ws(' ', ordinal_position,
            data_type, character_maximum_length, is_nullable, column_default, is_identity)
        FROM information_schema.columns
        UNION ALL SELECT 'index ' || indexname, indexdef FROM pg_indexes
        UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname,
            pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0
        UNION ALL SELECT 'trigger ' || tgname, pg_get_triggerdef(oid)
            FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT 'function ' || proname, prosrc FROM pg_proc WHERE proname LIKE 'chatcore_%'
    """,
}


def test_a_thread_that_goes_on_after_another_database_is_left_comes_back(
    transactional_db: None, tmp_path: Path
) -> None:
    """The writer of deltas does, and would not find the next test's turns."""
    own_connection = partial(use_own_connection, lock_seconds=0.02)
    with ThreadPoolExecutor(1, initializer=own_connection) as thread:
        with create_database(tmp_path) as name, use_database_name(name):
            assert thread.submit(read_database_name).result() == name
            assert read_database_name() == name
        assert thread.submit(read_database_name).result() == read_database_name() != name
        thread.submit(connections.close_all).result()


def read_database_name() -> str:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT file FROM pragma_database_list WHERE name = 'main'")
        else:
            cursor.execute("SELECT current_database()")
        return str(cursor.fetchone()[0])
