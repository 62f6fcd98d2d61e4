"""Read a session from a JSON file."""

import json
import sys
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.transfer import reader, sessions


class Command(BaseCommand):
    help = "Make a new session from FILE, as `export` writes it; - is standard input. Prints the new session's id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="A JSON file, or -.")
        parser.add_argument(
            "--user", help="Whose session it becomes; needed when there is more than one user."
        )

    def handle(self, *args: Any, file: str, user: str | None, **options: Any) -> None:
        """Print the new session's id."""
        try:
            export_data = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text())
            session = sessions.import_session(_find_owner(user), export_data)
        except (OSError, ValueError) as error:
            raise CommandError(f"{file} cannot be read: {error}") from None
        except reader.InvalidImport as error:
            raise CommandError(f"{file}: {error}") from None
        self.stdout.write(str(session.pk))


def _find_owner(name: str | None) -> Any:
    users = get_user_model()._default_manager.all()
    matches = list(users.filter(**{get_user_model().USERNAME_FIELD: name}) if name else users[:2])
    if len(matches) != 1:
        raise CommandError(
            f"There is no user called {name}." if name else "Name the owner with --user."
        )
    return matches[0]
