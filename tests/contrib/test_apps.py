"""Apps that can be absent: what each of them declares, and how one is dropped and comes back."""

import gzip
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import (
    BinaryField,
    DateField,
    DateTimeField,
    DecimalField,
    IntegerField,
    Model,
)
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore import extension
from chatcore.base import checks
from chatcore.base.databases import absent_apps
from chatcore.base.databases.absent_apps import list_models
from chatcore.base.environment import read_names
from chatcore.contrib.audit.models import AuditEntry
from chatcore.contrib.backups import restoration
from chatcore.contrib.holds.models import Hold
from chatcore.extension import OPTIONAL_APPS, ExtensionConfig


@pytest.mark.parametrize("app", OPTIONAL_APPS, ids=lambda app: app.name)
def test_an_app_is_configured_and_names_its_tables(app: extension.OptionalApp) -> None:
    config = apps.get_app_config(app.name)
    assert isinstance(config, ExtensionConfig)
    assert config.name == app.path
    models = config.get_models(include_auto_created=True)
    assert {model._meta.db_table for model in models} == set(app.tables)


def test_the_variable_names_apps_or_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, names in (("", []), ("Holds", ["holds"]), ("all", ["holds", "budgets"])):
        monkeypatch.setenv("CHATCORE_WITHOUT", text)
        assert read_names("CHATCORE_WITHOUT", ["holds", "budgets"]) == names
    monkeypatch.setenv("CHATCORE_WITHOUT", "hold")
    with pytest.raises(Exception, match=r"names 'hold'; it can be `all`, or some of holds"):
        read_names("CHATCORE_WITHOUT", ["holds"])


@pytest.fixture
def without_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks at absent apps finds the holds absent; all models stay as they are."""
    app = next(app for app in OPTIONAL_APPS if app.name == "holds")
    for module in (absent_apps, restoration):
        monkeypatch.setattr(module, "list_absent_apps", lambda: [app])


@pytest.fixture
def tables(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make again what a test drops."""
    yield
    monkeypatch.undo()
    call_command("migrate", verbosity=0)


def find_problems() -> list[tuple[str | None, str | None]]:
    return [(problem.id, problem.hint) for problem in checks.check_absent_apps()]


def has_table() -> bool:
    return Hold._meta.db_table in connection.introspection.table_names()


def test_rows_of_an_absent_app_refuse_a_start_and_empty_tables_go(
    tables: None, user: User, without_holds: None
) -> None:
    hold = Hold.objects.create(user=user, reason="A case.", ended_at=timezone.now())
    ((number, hint),) = find_problems()
    assert number == "chatcore.E003"
    assert "chatcore drop_app holds" in str(hint)
    call_command("migrate", verbosity=0, skip_checks=True)
    assert has_table()
    hold.delete()
    assert find_problems() == []
    call_command("migrate", verbosity=0)
    assert not has_table()


def test_an_app_that_was_left_out_at_first_gives_the_staff_its_rights_when_it_comes(
    tables: None, tmp_path: Path
) -> None:
    auditors = Group.objects.create(name="Auditor")
    call_command("drop_app", "audit", tmp_path / "rows.gz", yes=True, verbosity=0)
    ContentType.objects.filter(app_label="audit").delete()
    ContentType.objects.clear_cache()
    call_command("migrate", verbosity=0)
    assert list(auditors.permissions.values_list("codename")) == [("view_auditentry",)]


def test_nothing_is_asked_where_no_app_is_absent(db: None) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert checks.check_absent_apps() == []
    assert not queries.captured_queries


@pytest.mark.slow
def test_an_app_is_dropped_into_an_archive_and_comes_back(
    tables: None, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    staff = Group.objects.create(name="Lawyers")
    content_type = ContentType.objects.get_for_model(Hold)
    right, _ = Permission.objects.get_or_create(content_type=content_type, codename="view_hold")
    staff.permissions.add(right)
    other = User.objects.create_user("bob")
    now = timezone.now()
    kept = Hold.objects.create(user=user, reason="Case 1", created_by=other, ended_at=now)
    Hold.objects.create(user=other, reason="Case 2", ended_at=now)
    archive = tmp_path / "holds.jsonl.gz"
    call_command("drop_app", "holds", yes=True, verbosity=0)  # as the check says
    assert not has_table()
    assert archive.stat().st_mode & 0o777 == 0o600
    rows = gzip.decompress(archive.read_bytes()).splitlines()
    assert [json.loads(row)["pk"] for row in rows] == [kept.pk, kept.pk + 1]
    call_command("migrate", verbosity=0)
    other.delete()
    call_command("load_app", "holds", verbosity=0)
    # What belonged to somebody who is gone stays gone, and no row names who is.
    assert list(Hold.objects.values_list("reason", "created_by")) == [("Case 1", None)]
    assert Hold.objects.create(user=user, reason="Case 3").pk > kept.pk
    assert list(staff.permissions.values_list("content_type__app_label")) == [("holds",)]
    with pytest.raises(CommandError, match="have rows already"):
        call_command("load_app", "holds", archive)


def test_an_entry_of_the_audit_log_comes_back_without_its_person(
    tables: None, tmp_path: Path
) -> None:
    person = User.objects.create_user("carol")
    entry = AuditEntry.objects.create(act="sign_in.succeeded", actor=person)
    archive = tmp_path / "audit.jsonl.gz"
    call_command("drop_app", "audit", archive, yes=True, verbosity=0)
    call_command("migrate", verbosity=0)
    number = person.pk
    person.delete()
    call_command("load_app", "audit", archive, verbosity=0)
    assert list(AuditEntry.objects.values_list("at", "actor_id")) == [(entry.at, number)]


def test_an_open_hold_refuses_to_be_dropped(db: None, user: User, tmp_path: Path) -> None:
    Hold.objects.create(user=user, reason="A case.")
    with pytest.raises(CommandError, match="1 legal holds are open"):
        call_command("drop_app", "holds", tmp_path / "file", yes=True)
    assert not (tmp_path / "file").exists()


def test_a_file_that_is_no_archive_is_refused(db: None, tmp_path: Path) -> None:
    file = tmp_path / "file"
    row = {"model": "auth.user", "pk": 1, "fields": {"username": "mallory"}}
    for content in (b"{", gzip.compress(b"{"), gzip.compress(json.dumps(row).encode())):
        file.write_bytes(content)
        with pytest.raises(CommandError, match=r"is no archive of holds|It has rows of auth.User"):
            call_command("load_app", "holds", file)
    assert not User.objects.filter(username="mallory").exists()


def test_a_backup_with_an_app_that_is_absent_is_none_of_another_version(
    without_holds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget_holds(_: Any) -> Any:
        return type("Loader", (), {"disk_migrations": {}})

    monkeypatch.setattr(restoration, "MigrationLoader", forget_holds)
    assert restoration._list_known_migrations() == {"holds.0001_initial"}


NUMBERS = count(1)


def store_row(model: Any) -> Model:
    """Store a row with a value in each column that needs one."""
    number = next(NUMBERS)
    values: dict[str, Any] = {"ended_at": timezone.now()} if model is Hold else {}
    for field in model._meta.concrete_fields:
        if field.is_relation and not field.null:
            values[field.name] = store_row(field.related_model)
        elif field.primary_key or field.has_default() or field.null:
            continue
        elif isinstance(field, DateTimeField):
            values[field.name] = timezone.now()
        elif isinstance(field, DateField):
            values[field.name] = timezone.now().date()
        elif isinstance(field, BinaryField):
            values[field.name] = bytes([number])
        else:
            is_number = isinstance(field, IntegerField | DecimalField)
            values[field.name] = number if is_number else f"é{number}"
    row: Model = model._base_manager.create(**values)
    return row


@pytest.mark.parametrize(
    "app", [app for app in OPTIONAL_APPS if app.tables], ids=lambda app: app.name
)
def test_every_app_comes_back_with_its_rows(
    tables: None, app: extension.OptionalApp, tmp_path: Path
) -> None:
    models = list_models(app)
    for model in models * 3:
        store_row(model)
    before = {model: list(model._base_manager.order_by("pk").values()) for model in models}
    archive = tmp_path / "rows.gz"
    call_command("drop_app", app.name, archive, yes=True, verbosity=0)
    assert not set(app.tables) & set(connection.introspection.table_names())
    call_command("migrate", verbosity=0)
    call_command("load_app", app.name, archive, verbosity=0)
    for model, rows in before.items():
        assert list(model._base_manager.order_by("pk").values()) == rows
        store_row(model)  # with a key that no row has
