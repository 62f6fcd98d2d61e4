"""`chatcore migrate`: Django's, under a lock, so that two machines do not migrate at once.

A database from before 0.3.0 is refused. New tables of the registry get the rows of its catalog.
Empty tables of apps that are left out go.
"""

from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections

from chatcore.base.databases.absent_apps import drop_empty_tables
from chatcore.base.databases.old_databases import REFUSAL, is_database_too_old
from chatcore.serving.preparation import hold_start_lock
from models_registry import catalog
from models_registry.models import AiModel


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with hold_start_lock():
            alias = options["database"]
            if is_database_too_old(alias):
                raise CommandError(f"Nothing was changed: the database {REFUSAL}.")
            had_registry = _has_registry(alias)
            super().handle(*args, **options)
            # A registry that has been there keeps what its operators have made of it.
            if not had_registry and _has_registry(alias):
                catalog.sync(using=alias)
            is_whole = not options["app_label"]
            if is_whole and not options["plan"] and not options["check_unapplied"]:
                drop_empty_tables()


def _has_registry(alias: str) -> bool:
    return AiModel._meta.db_table in connections[alias].introspection.table_names()
