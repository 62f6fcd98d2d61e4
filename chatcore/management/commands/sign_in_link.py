"""`chatcore sign_in_link`: print a link that signs a user in once, as `serve` does."""

from argparse import ArgumentParser

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from chatcore.web import sign_in


class Command(BaseCommand):
    help = (
        "Print a link that signs a user in once, within 15 minutes. Without a name it is the first"
        " administrator, who is created in a new database."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", nargs="?")
        parser.add_argument(
            "--url",
            default=settings.PUBLIC_URL or sign_in.load_address(),
            help="where people reach the server (default: where it was served last, %(default)s)",
        )

    def handle(self, *, username: str | None, url: str, **options: object) -> None:
        user = self._find_user(username) if username else sign_in.ensure_administrator()
        if user is None:
            raise CommandError(
                "There is no active superuser; `chatcore createsuperuser` makes one."
            )
        self.stdout.write(f"{url.rstrip('/')}{sign_in.build_link_path(user)}")

    def _find_user(self, username: str) -> User:
        user = get_user_model()._default_manager.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {username}.")
        return user
