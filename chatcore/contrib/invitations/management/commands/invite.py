"""`chatcore invite`: print a link that lets somebody make an account."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.accounts.sign_up import get_sign_up_mode
from chatcore.contrib.invitations.links import DEFAULT_DAYS, MAX_DAYS, create_invitation


class Command(BaseCommand):
    help = "Print a link that lets somebody make one account. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--note", default="", help="Whom it is for.")
        parser.add_argument(
            "--days",
            type=int,
            default=DEFAULT_DAYS,
            help="How long it works (default: %(default)s).",
        )
        parser.add_argument(
            "--group", action="append", default=[], help="A group that the account joins."
        )

    def handle(
        self, *args: object, note: str, days: int, group: list[str], **options: object
    ) -> None:
        """Print the link and nothing else, so that a script can read it."""
        if get_sign_up_mode() == "closed":
            raise CommandError(
                "Sign-up is closed. Set CHATCORE_SIGN_UP=invitation for the server too, or allow"
                " it in the admin's settings."
            )
        if not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--days is {days}; it must be from 1 to {MAX_DAYS}.", returncode=2)
        groups = []
        for name in group:
            row = Group.objects.filter(name=name).first()
            if row is None:
                raise CommandError(f"--group: there is no group called {name}.", returncode=2)
            groups.append(row)
        _, path = create_invitation(made_by=None, note=note[:200], days=days, groups=groups)
        self.stdout.write(f"{settings.PUBLIC_URL or 'http://127.0.0.1:8000'}{path}")
