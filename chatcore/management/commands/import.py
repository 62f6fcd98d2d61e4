"""`chatcore import`: create a session from a JSON file."""

import json
import sys
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.transfer import importer, reader


class Command(BaseCommand):
    help = (
        "Create a session from FILE, as `export` writes it, and print its id."
        " A - means standard input."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="A JSON file, or -.")
        parser.add_argument(
            "--user", help="Whose session it becomes; needed when there is more than one user."
        )

    def handle(self, *args: Any, file: str, user: str | None, **options: Any) -> None:
        """Print the new session's id."""
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text()
            export_data = json.loads(text)
            session = importer.import_session(_find_owner(user), export_data)
        except (OSError, ValueError) as error:
            raise CommandError(f"{file} cannot be read: {error}") from None
        except reader.InvalidImport as error:
            raise CommandError(f"{file}: {error}") from None
        self.stdout.write(str(session.pk))


def _find_owner(name: str | None) -> Any:
    """Return the user with this name, or without a name the only user."""
    user_model = get_user_model()
    users = user_model._default_manager.all()
    if name:
        user = users.filter(**{user_model.USERNAME_FIELD: name}).first()
        if user is None:
            raise CommandError(f"There is no user called {name}.")
        return user
    first_users = list(users[:2])
    if len(first_users) != 1:
        raise CommandError("Name the owner with --user.")
    return first_users[0]
