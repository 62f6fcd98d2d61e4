"""`chatcore migrate`: Django's, under a lock, so that two machines do not migrate at once.

Empty tables of apps that are left out go.
"""

from typing import Any

from django.core.management.commands import migrate

from chatcore.base.databases.absent_apps import drop_empty_tables
from chatcore.serving.start_lock import hold_start_lock


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with hold_start_lock():
            super().handle(*args, **options)
            is_whole = not options["app_label"]
            if is_whole and not options["plan"] and not options["check_unapplied"]:
                drop_empty_tables()
