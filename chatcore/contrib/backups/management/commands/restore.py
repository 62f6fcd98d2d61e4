"""`chatcore restore`: put back what `chatcore backup` wrote."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from chatcore.contrib.backups import archive, databases, restoration


class Command(BaseCommand):
    help = (
        "Replace the database and the keys of the data folder by those of FILE, which `backup`"
        " wrote, bring the outputs back, and migrate. Stop everything else first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="The backup.")
        parser.add_argument(
            "--force",
            action="store_true",
            help="Replace a database that has users or sessions already.",
        )

    def handle(self, *, file: Path, force: bool, **options: object) -> None:
        """Print what was restored, and what to check it with."""
        try:
            manifest = restoration.restore_backup(file, is_forced=force)
        except (archive.InvalidBackup, restoration.DatabaseInUse) as error:
            raise CommandError(str(error)) from None
        except (databases.CopyFailed, OSError) as error:
            raise CommandError(f"Nothing was restored: {error}") from None
        counts = ", ".join(f"{number} {name}" for name, number in manifest.counts.items())
        self.stdout.write(f"Restored the backup of {manifest.created_at}: {counts}.")
        self.stdout.write("`chatcore verify` checks it.")
