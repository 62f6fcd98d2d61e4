"""Migrations change large tables while people write: no index is built under a lock."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

from chatcore.base.databases.columns import AddFieldWithoutCopy
from chatcore.extension import OPTIONAL_APPS

OURS = ("chatcore", "compaction", "models_registry", *(app.name for app in OPTIONAL_APPS))
INDEXED = ("message", "attachment")  # by the search, whose triggers a copied table would lose


def list_operations() -> Iterator[
    tuple[migrations.Migration, migrations.operations.base.Operation]
]:
    for (app, _), migration in MigrationLoader(None).disk_migrations.items():
        if app in OURS:
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


FIRST_MIGRATIONS = {
    "models_registry": "0001_squashed_0011",
    "chatcore": "0001_squashed_0064",
    "compaction": "0001_squashed_0029",
}


@pytest.mark.parametrize("app", FIRST_MIGRATIONS)
def test_a_first_migration_imports_nothing_of_the_product(app: str) -> None:
    """Else a module that is moved or changed would change what it makes."""
    path = Path(apps.get_app_config(app).path, "migrations", f"{FIRST_MIGRATIONS[app]}.py")
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in modules} <= {"django", "uuid"}


TABLES = ("session", "turn", "message", "sessionevent", "contextrevision")


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
    model = apps.get_model("chatcore", name)
    firsts = {columns[0] for columns in list_index_columns(model)}
    doubled = [
        field.name for field in model._meta.fields if field.db_index and field.name in firsts
    ]
    assert not doubled
