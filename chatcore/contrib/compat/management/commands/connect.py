"""`chatcore connect`: print what stands in the settings of a program, with a token for it."""

from argparse import ArgumentParser

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from chatcore.accounts.rights import select_models
from chatcore.accounts.tokens import TooManyTokens
from chatcore.contrib.compat.connect.filling import build_connection, make_token
from chatcore.contrib.compat.connect.programs import PROGRAMS
from chatcore.web import sign_in


class Command(BaseCommand):
    help = "Print what stands in the settings of a program, with a new token in it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("program", choices=list(PROGRAMS))
        parser.add_argument(
            "--user", default="", help="whose token it is (default: the first administrator)"
        )
        parser.add_argument("--model", default="", help="name or provider/name (default: theirs)")
        parser.add_argument("--token", default="", help="a token that is there already")
        parser.add_argument(
            "--url",
            default=settings.PUBLIC_URL or sign_in.load_address(),
            help="where the program reaches the server (default: %(default)s)",
        )

    def handle(
        self, *, program: str, user: str, model: str, token: str, url: str, **options: object
    ) -> None:
        """Print the block alone on the output, and where it goes beside it."""
        owner = self._find_user(user)
        chosen = PROGRAMS[program]
        row = select_models(owner.pk).find_by_name(model) if model else None
        if model and row is None:
            raise CommandError(f"There is no model {model} that {owner} may use.")
        connection = build_connection(owner, address=url, token="", model=row)
        if connection is None:
            raise CommandError("There is no model yet. `chatcore add_provider` begins with one.")
        try:
            text = token or make_token(owner, chosen)
        except TooManyTokens as refusal:
            raise CommandError(str(refusal)) from None
        connection = build_connection(owner, address=url, token=text, model=row)
        assert connection
        place = f"In {chosen.file}" if chosen.file else "In a terminal"
        self.stderr.write(f"{place}, then start: {chosen.build_start(connection)}")
        self.stdout.write(chosen.build_block(connection))

    def _find_user(self, name: str) -> User:
        user = (
            get_user_model()._default_manager.filter(username=name, is_active=True).first()
            if name
            else None
        )
        user = user or (None if name else sign_in.ensure_administrator())
        if user is None:
            raise CommandError(f"There is no active user {name}." if name else "There is no user.")
        return user
