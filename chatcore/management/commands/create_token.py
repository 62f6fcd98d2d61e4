"""`chatcore create_token`: create an API token for a user and print it once."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.accounts.tokens import MAX_NAME_CHARS, TooManyTokens, create_token
from chatcore.base.rest.auth import ALL, PREFIXES

MAX_DAYS = 3_650


class Command(BaseCommand):
    help = "Create an API token for USER and print it. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="The user's name.")
        parser.add_argument("--name", default="", help="What uses the token.")
        parser.add_argument(
            "--days",
            type=int,
            default=settings.TOKEN_DAYS,
            help="How long it is valid (default: %(default)s); 0: until it is revoked.",
        )
        parser.add_argument(
            "--scope",
            choices=list(PREFIXES),
            default=ALL,
            help="read: it only reads; chat: nothing that would outlive it; all (default).",
        )

        parser.add_argument(
            "--without-conversations",
            action="store_true",
            help="Store no conversation that a program names by itself.",
        )

    def handle(
        self,
        *args: object,
        user: str,
        name: str,
        days: int,
        scope: str,
        without_conversations: bool,
        **options: object,
    ) -> None:
        """Print the token and nothing else, so that a script can read it."""
        users = get_user_model()
        try:
            owner = users._default_manager.get_by_natural_key(user)
        except users.DoesNotExist:
            raise CommandError(f"There is no user called {user}.") from None
        if not 0 <= days <= MAX_DAYS:
            raise CommandError(f"--days is {days}; it must be from 0 to {MAX_DAYS}.", returncode=2)
        expiry = timedelta(days=days) if days else None
        try:
            _, token = create_token(
                owner,
                name=name[:MAX_NAME_CHARS],
                expiry=expiry,
                scope=scope,
                keeps_conversations=not without_conversations,
            )
        except TooManyTokens as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(token)
