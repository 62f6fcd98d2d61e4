"""Recognize databases from before 0.3.0, whose migrations are gone.

Each package begins with one migration that stands for all those. 0.3.0 had both and noted the one
as applied where it found the others.
"""

from collections.abc import Collection

from django.apps import apps
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

REFUSAL = "is older than 0.3.0. Upgrade to 0.3.0 first, and from there to this version"
_FIRST_MIGRATIONS = {
    "models_registry": "0001_squashed_0011",
    "chatcore": "0001_squashed_0064",
    "compaction": "0001_squashed_0029",
}


def is_database_too_old(alias: str = "default") -> bool:
    """Return whether the database has tables of a version before 0.3.0."""
    connection = connections[alias]
    tables = set(connection.introspection.table_names())
    labels = {
        label
        for label in _FIRST_MIGRATIONS
        if any(model._meta.db_table in tables for model in apps.get_app_config(label).get_models())
    }
    names = MigrationRecorder(connection).applied_migrations()
    return are_migrations_too_old({f"{app}.{name}" for app, name in names if app in labels})


def are_migrations_too_old(names: Collection[str]) -> bool:
    """Return whether a database with these migrations (app.name) was never at 0.3.0."""
    return any(
        f"{label}.{first}" not in names and any(is_replaced(name) for name in names)
        for label, first in _FIRST_MIGRATIONS.items()
        if any(name.startswith(f"{label}.") for name in names)
    )


def is_replaced(name: str) -> bool:
    """Return whether a first migration stands for this one (app.name)."""
    label, _, name = name.partition(".")
    first = _FIRST_MIGRATIONS.get(label)
    return first is not None and name != first and name[:4] <= first[-4:]
