"""Migrations change large tables while people write: no index is built under a lock."""

from collections.abc import Iterator

from django.db import migrations
from django.db.migrations.loader import MigrationLoader

OURS = ("chatcore", "compaction", "models_registry")
# Those that landed before the rule, and tables that their migration creates.
FORMER = {"chatcore": 28, "compaction": 14, "models_registry": 9}


def list_operations() -> Iterator[
    tuple[migrations.Migration, migrations.operations.base.Operation]
]:
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if app in OURS and int(name[:4]) > FORMER[app]:
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
