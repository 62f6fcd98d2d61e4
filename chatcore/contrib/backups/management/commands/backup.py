"""`chatcore backup`: write everything that is stored into one file."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from chatcore.contrib.backups import creation, databases


class Command(BaseCommand):
    help = (
        "Write the database, the outputs of tools and the keys into FILE, while everything runs."
        " Keep the file as safe as the keys."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="Where the backup goes.")
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="Leave out the keys; without them the stored API keys cannot be opened.",
        )

    def handle(self, *, file: Path, without_keys: bool, **options: object) -> None:
        """Print what the backup holds."""
        try:
            manifest = creation.create_backup(file.absolute(), has_keys=not without_keys)
        except (databases.CopyFailed, OSError) as error:
            raise CommandError(f"No backup was written: {error}") from None
        counts = ", ".join(f"{number} {name}" for name, number in manifest.counts.items())
        self.stdout.write(f"{file}: {counts}")
