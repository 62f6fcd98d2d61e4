"""Prepare the database for this version: tables, the model registry, what a file has set."""

import io

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from chatcore.serving.start_lock import hold_start_lock
from chatcore.setup.documents import apply_setup_file
from chatcore.setup.sections import SetupRefused


def prepare_database() -> None:
    """Migrate, check, and fill what is missing; processes that start at once take turns."""
    with hold_start_lock():
        call_command("migrate", verbosity=0, interactive=False)
        call_command("sync_models", verbosity=0, stdout=io.StringIO())
        try:
            apply_setup_file()
        except SetupRefused as error:
            raise CommandError(str(error)) from None
        # Checks come after what they read: the settings may name a policy of the file.
        call_command("check", databases=["default"], stdout=io.StringIO())
        call_command("createcachetable", verbosity=0)


def require_prepared_database() -> None:
    """Raise CommandError unless the database has the tables of this version."""
    executor = MigrationExecutor(connection)
    missing_count = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if missing_count:
        raise CommandError(
            f"The database lacks {missing_count} migrations of this version."
            " `chatcore prepare` applies them, and so does --migrate."
        )
    missing_table = io.StringIO()
    call_command("createcachetable", verbosity=0, dry_run=True, stdout=missing_table)
    if missing_table.getvalue():
        raise CommandError(
            "The database lacks the table of the cache; `chatcore prepare` makes it."
        )


def close_connections() -> None:
    """Close the database connections of this process, whose children open their own."""
    for each_connection in connections.all():
        each_connection.close()
        if "pool" in each_connection.settings_dict["OPTIONS"]:
            each_connection.close_pool()  # type: ignore[attr-defined]
