"""`chatcore create_token`: create an API token for a user and print it once."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from knox.models import AuthToken


class Command(BaseCommand):
    help = "Create an API token for USER and print it. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="The user's name.")

    def handle(self, *args: Any, user: str, **options: Any) -> None:
        """Print the token and nothing else, so that a script can read it."""
        users = get_user_model()
        try:
            owner = users._default_manager.get_by_natural_key(user)
        except users.DoesNotExist:
            raise CommandError(f"There is no user called {user}.") from None
        _, token = AuthToken.objects.create(owner)
        self.stdout.write(token)
