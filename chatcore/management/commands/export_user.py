"""`chatcore export_user`: write everything that is a user's into a ZIP file."""

import os
from pathlib import Path

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.transfer.user_export import write_user_export


class Command(BaseCommand):
    help = "Write the sessions and other data of USER into the ZIP file FILE, which must be new."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="The user's name.")
        parser.add_argument("file", type=Path)

    def handle(self, *args: object, user: str, file: Path, **options: object) -> None:
        """Write the file, which only its owner may read."""
        user_model = get_user_model()
        row = user_model.objects.filter(**{user_model.USERNAME_FIELD: user}).first()
        if row is None:
            raise CommandError(f"There is no user {user}.")
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                count = write_user_export(row, stream)
        except FileExistsError:
            raise CommandError(f"{file} exists already.") from None
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
        self.stdout.write(f"{count} sessions of {user} are in {file}.")
