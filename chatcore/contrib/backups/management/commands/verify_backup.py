"""`chatcore verify_backup`: check a backup without restoring it, and say what is in it."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from chatcore.contrib.backups.archive import (
    FORMAT_WITHOUT_DIGESTS,
    KEY_FILES,
    OUTPUTS,
    InvalidBackup,
    check_archive,
)


class Command(BaseCommand):
    help = "Read the whole backup FILE, compare it with its checksums, and say what is in it."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="The backup.")

    def handle(self, *, file: Path, **options: object) -> None:
        """Print one line for each kind of content."""
        try:
            found = check_archive(file)
        except InvalidBackup as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error}") from None
        manifest = found.manifest
        assert manifest, "a whole backup has one"
        outputs = [size for name, size in found.sizes.items() if name.startswith(OUTPUTS)]
        keys = [name for name in KEY_FILES if name in found.sizes]
        lines = [
            f"{file}: whole, made {manifest.created_at}",
            f"database: {manifest.vendor}, {found.sizes['database']:,} bytes,"
            f" {len(manifest.migrations)} migrations",
            *(f"{name}: {count:,}" for name, count in manifest.counts.items()),
            f"files: {len(outputs):,}, {sum(outputs):,} bytes",
            f"keys: {', '.join(keys) or 'none'}",
        ]
        if manifest.format == FORMAT_WITHOUT_DIGESTS:
            lines.append("made by an earlier version: guarded by gzip's checksum alone")
        self.stdout.write("\n".join(lines))
