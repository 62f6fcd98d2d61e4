"""`chatcore prepare`: what a database needs before the processes of this version start."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand

from chatcore.base.installed_apps import describe_missing_apps
from chatcore.serving import preparation


class Command(BaseCommand):
    help = (
        "Migrate the database, make the table of the cache and fill the model registry. Several"
        " machines may run it at once: they take turns."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            preparation.BESIDE_OPTION,
            action="store_true",
            help="migrate although processes of another version use the database",
        )

    def handle(self, *, beside_old_processes: bool, **options: object) -> None:
        preparation.prepare_database(is_beside_others=beside_old_processes)
        self.stdout.write("The database is ready.")
        if missing_apps := describe_missing_apps():
            self.stdout.write(missing_apps)
