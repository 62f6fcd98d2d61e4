"""`chatcore apply_setup`: set once what a file names."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.setup.documents import OPERATOR, apply_document, read_toml
from chatcore.setup.sections import SetupRefused


class Command(BaseCommand):
    help = (
        "Set the providers, models, policies and groups that FILE names, all of them or nothing."
        " What CHATCORE_SETUP_FILE sets belongs to that file; what this sets can be edited."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", metavar="FILE", type=Path)

    def handle(self, *args: object, path: Path, **options: object) -> None:
        try:
            changes = apply_document(read_toml(path), OPERATOR)
        except SetupRefused as error:
            raise CommandError(f"{path}: {error}") from None
        for change in changes:
            self.stdout.write(f"{change} is set.")
        if not changes:
            self.stdout.write("All of it was so already.")
