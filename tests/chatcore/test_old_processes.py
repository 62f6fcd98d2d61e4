"""A migration does not begin while processes of another version use the database."""

import hashlib
import io
import socket
import subprocess
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from chatcore.models import ServingProcess
from chatcore.serving import preparation, processes

pytestmark = pytest.mark.django_db(transaction=True)
OLD = "other-machine:17"


@pytest.fixture
def missing_migration() -> Iterator[None]:
    """A database that lacks the newest migration, as far as its records say."""
    graph = MigrationLoader(connection).graph
    last = next(key for key in graph.leaf_nodes() if not graph.node_map[key].children)
    MigrationRecorder(connection).record_unapplied(*last)
    yield
    call_command("migrate", fake=True, verbosity=0)


def see(name: str, *, migrations: str = "0123456789ab", seconds_ago: float = 0) -> None:
    ServingProcess.objects.create(
        name=name,
        kind=ServingProcess.Kind.WEB,
        version="0.1.9",
        migrations=migrations,
        seen_at=timezone.now() - timedelta(seconds=seconds_ago),
    )


def refuse() -> str:
    with pytest.raises(CommandError) as refusal:
        preparation.prepare_database()
    return str(refusal.value)


def is_refused() -> bool:
    try:
        preparation._require_no_foreign_process()
    except CommandError:
        return True
    return False


def test_prepare_names_the_processes_and_what_to_do(missing_migration: None) -> None:
    see(OLD)
    reason = refuse()
    assert preparation.count_missing_migrations() == 1
    assert f"web {OLD} (version 0.1.9, migrations 0123456789ab)" in reason
    assert "Stop them" in reason
    assert "`chatcore prepare --beside-old-processes`" in reason


def test_it_migrates_beside_them_where_it_is_asked_to() -> None:
    call_command("migrate", "compaction", "0001_squashed_0029", verbosity=0)
    see(OLD)
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("prepare")
    call_command("prepare", "--beside-old-processes", stdout=io.StringIO())
    assert not preparation.count_missing_migrations()


def test_nothing_is_refused_where_nothing_is_to_migrate() -> None:
    see(OLD)
    assert not is_refused()


def test_a_process_of_this_version_and_one_that_is_silent_do_not_count(
    missing_migration: None,
) -> None:
    processes.record_process(ServingProcess.Kind.WEB, "other-machine:18")
    see(OLD, seconds_ago=90)
    assert not is_refused()
    ServingProcess.objects.filter(name=OLD).update(seen_at=timezone.now())
    assert is_refused()


def test_a_process_of_this_machine_that_was_killed_does_not_count(missing_migration: None) -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        see(f"{socket.gethostname()}:{child.pid}")
        assert is_refused()
    finally:
        child.kill()
        child.wait()
    assert not is_refused()


def test_a_number_that_another_process_has_now_does_not_count(missing_migration: None) -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        see(f"{socket.gethostname()}:{child.pid}", seconds_ago=30)
        assert not is_refused()
    finally:
        child.kill()
        child.wait()


def test_a_database_from_before_the_signs_is_migrated(missing_migration: None) -> None:
    with connection.schema_editor() as editor:
        editor.delete_model(ServingProcess)
    try:
        assert not is_refused()
    finally:
        with connection.schema_editor() as editor:
            editor.create_model(ServingProcess)


def test_the_digest_is_of_all_migrations_that_are_there() -> None:
    names = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    text = "\n".join(sorted(f"{label}.{name}" for label, name in names))
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == processes.digest_migrations()
