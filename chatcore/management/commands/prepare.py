"""`chatcore prepare`: what a database needs before the processes of this version start."""

from django.core.management.base import BaseCommand

from chatcore.serving import preparation


class Command(BaseCommand):
    help = (
        "Migrate the database, make the table of the cache and fill the model registry. Several"
        " machines may run it at once: they take turns."
    )

    def handle(self, **options: object) -> None:
        preparation.prepare_database()
        self.stdout.write("The database is ready.")
