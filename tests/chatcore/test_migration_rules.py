"""Migrations change large tables while people write: no index is built under a lock."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader

from chatcore.base.databases.columns import AddFieldWithoutCopy
from chatcore.extension import OPTIONAL_APPS

OURS = ("chatcore", "compaction", "models_registry", *(app.name for app in OPTIONAL_APPS))
# Those that landed before the rule, and tables that their migration creates.
FORMER = {"chatcore": 28, "compaction": 14, "models_registry": 9}
INDEXED = ("message", "attachment")  # by the search, whose triggers a copied table would lose


def list_operations() -> Iterator[
    tuple[migrations.Migration, migrations.operations.base.Operation]
]:
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if app in OURS and int(name[:4]) > FORMER.get(app, 0):
            yield from ((migration, operation) for operation in migration.operations)


def test_an_index_of_a_table_that_is_there_is_built_without_a_lock() -> None:
    for migration, operation in list_operations():
        created = {
            step.name_lower
            for step in migration.operations
            if isinstance(step, migrations.CreateModel)
        }
        if isinstance(operation, migrations.AddIndex) and operation.model_name_lower not in created:
            assert type(operation).__name__ == "AddIndexWithoutLock", f"{migration}: {operation}"
            assert not migration.atomic, f"{migration}: an index cannot be built in a transaction"


def test_a_column_that_is_added_has_no_index_of_its_own() -> None:
    """Django would build that under a lock; it is added to the model's indexes instead."""
    for migration, operation in list_operations():
        if isinstance(operation, migrations.AddField):
            options = operation.field.deconstruct()[3]
            is_relation = operation.field.is_relation
            has_index = options.get("db_index", is_relation) or options.get("unique")
            assert not has_index, f"{migration}: {operation}"


def test_a_column_of_a_table_that_the_search_indexes_is_added_without_a_copy_of_it() -> None:
    for migration, operation in list_operations():
        if getattr(operation, "model_name_lower", "") not in INDEXED:
            continue
        assert not isinstance(operation, migrations.AlterField), f"{migration}: {operation}"
        if isinstance(operation, migrations.AddField) and not operation.field.null:
            assert isinstance(operation, AddFieldWithoutCopy), f"{migration}: {operation}"


def test_the_search_keeps_its_triggers_through_all_migrations(db: None) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL alters a table in its place.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'trigger'")
        assert {f"chatcore_{name}" for name in INDEXED} <= {row[0] for row in cursor.fetchall()}


SQUASHES = {
    "models_registry": "0001_squashed_0011",
    "chatcore": "0001_squashed_0064",
    "compaction": "0001_squashed_0029",
}


@pytest.mark.parametrize("app", SQUASHES)
def test_a_squash_imports_nothing_of_the_product(app: str) -> None:
    """Else a module that is moved or changed would change what it makes."""
    path = Path(apps.get_app_config(app).path, "migrations", f"{SQUASHES[app]}.py")
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in modules} <= {"django", "uuid"}


@pytest.mark.parametrize("app", SQUASHES)
def test_a_squash_stands_for_all_migrations_before_it_which_are_kept(app: str) -> None:
    """A database that stopped among them needs their files to go on."""
    loader = MigrationLoader(None)
    last_number = int(SQUASHES[app].rpartition("_")[2])
    replaced = [name for _, name in loader.disk_migrations[app, SQUASHES[app]].replaces]
    assert [int(name[:4]) for name in replaced] == list(range(1, last_number + 1))
    assert {(app, name) for name in replaced} <= loader.disk_migrations.keys()


@pytest.mark.parametrize("app", SQUASHES)
def test_a_squash_depends_on_no_other_squash(app: str) -> None:
    """On a database that has all former ones, `migrate APP` notes the squash of APP alone."""
    dependencies = MigrationLoader(None).disk_migrations[app, SQUASHES[app]].dependencies
    assert not [name for label, name in dependencies if SQUASHES.get(label) == name]


@pytest.mark.parametrize("app", SQUASHES)
def test_a_squash_leaves_the_models_that_the_migrations_before_it_left(app: str) -> None:
    """With their columns in the same order, which is that of the tables."""
    last = {
        label: max(name for _, name in squash.replaces)
        for (label, key), squash in MigrationLoader(None).disk_migrations.items()
        if SQUASHES.get(label) == key
    }
    former = MigrationLoader(None, replace_migrations=False)
    states = [
        former.project_state(list(last.items())),
        MigrationLoader(None).project_state(list(SQUASHES.items())),
    ]
    before, after = (
        {
            name: {
                "columns": list(model.fields),
                **{key: model.options.get(key) for key in ("ordering", "db_table")},
                **{
                    key: sorted(each.name for each in model.options.get(key, []))
                    for key in ("indexes", "constraints")
                },
            }
            for (label, name), model in state.models.items()
            if label == app
        }
        for state in states
    )
    assert before == after
