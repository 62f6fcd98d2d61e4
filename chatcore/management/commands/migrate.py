"""`chatcore migrate`: Django's, under a lock, so that two machines do not migrate at once."""

from typing import Any

from django.core.management.commands import migrate

from chatcore.serving.start_lock import hold_start_lock


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with hold_start_lock():
            super().handle(*args, **options)
