"""`chatcore load_app`: read back what `drop_app` wrote."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from chatcore.base.databases.absent_apps import InvalidArchive, load_app_archive
from chatcore.extension import OPTIONAL_APPS, list_absent_apps


class Command(BaseCommand):
    help = "Read the rows of APP from FILE, which `drop_app` wrote. Its tables must be empty."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("app", choices=[app.name for app in OPTIONAL_APPS])
        parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="Or APP.jsonl.gz.")

    def handle(self, *, app: str, file: Path | None, **options: object) -> None:
        """Print how many rows came back."""
        file = file or Path(f"{app}.jsonl.gz")
        if app in [each.name for each in list_absent_apps()]:
            raise CommandError(f"CHATCORE_WITHOUT leaves {app} out.")
        optional_app = next(each for each in OPTIONAL_APPS if each.name == app)
        try:
            loaded, left_out = load_app_archive(optional_app, file)
        except InvalidArchive as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
        self.stdout.write(f"{loaded:,} rows are back.")
        if left_out:
            self.stdout.write(f"{left_out:,} were left out: what they belong to is gone.")
