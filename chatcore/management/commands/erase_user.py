"""`chatcore erase_user`: erase a person with everything, and print the proof."""

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.accounts.user_erasure import AccountKept, erase_user


class Command(BaseCommand):
    help = "Erase USER with all sessions, files, tokens and other rows. It cannot be undone."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="The user's name.")
        parser.add_argument(
            "--yes", action="store_true", help="Without it the command says what it would do."
        )

    def handle(self, *args: object, user: str, yes: bool, **options: object) -> None:
        """Print each table with the rows that were erased; fail if any is left."""
        row = get_user_model()._default_manager.filter(username=user).first()
        if row is None:
            raise CommandError(f"There is no user called {user}.")
        if not yes:
            raise CommandError(
                f"This erases {user} for good. Add --yes to do it;"
                f" `chatcore export_user {user} FILE.zip` keeps a copy."
            )
        try:
            erasure = erase_user(row)
        except AccountKept as reason:
            raise CommandError(f"{user} must stay: {reason}.") from None
        for table, count in erasure.rows.items():
            if count:
                self.stdout.write(f"{table}: {count} erased")
        if erasure.rows_left:
            raise CommandError(f"Rows are left: {erasure.rows_left}. Run the command again.")
        self.stdout.write("Nothing is left. Backups made before still have the person.")
