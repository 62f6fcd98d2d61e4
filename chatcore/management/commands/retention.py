"""`chatcore retention`: say what retention takes, let a large round go on, and bring chats back."""

from argparse import ArgumentParser
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet

from chatcore.base.databases.clock import read_clock
from chatcore.models import Session
from chatcore.sessions import deletion, retention, upkeep


class Command(BaseCommand):
    help = (
        "Say how many chats retention takes now, and how many it has hidden. With --confirm a round"
        " may take a large share of all chats for a day. With --bring-back hidden chats are shown"
        " to their owners again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--confirm", action="store_true", help="Let a large round go on.")
        parser.add_argument(
            "--bring-back", nargs="+", metavar="SESSION", help="Numbers of chats, or `all`."
        )

    def handle(self, *, confirm: bool, bring_back: list[str] | None, **options: object) -> None:
        """Do what was asked, and print the numbers."""
        hidden_sessions = Session.all_objects.filter(
            expired_at__isnull=False, discard_at__gt=read_clock()
        )
        if bring_back:
            count = deletion.bring_back(_find_ids(bring_back, hidden_sessions))
            self.stdout.write(f"{count} chats are back.")
        if confirm:
            retention.confirm_large_round()
            self.stdout.write("Rounds of retention may take a large share for a day.")
        due_count, all_count = retention.count_due()
        self.stdout.write(
            f"{due_count} of {all_count} chats are due, and {hidden_sessions.count()} are hidden"
            " and can be brought back."
        )
        if problem := upkeep.find_clock_problem():
            self.stdout.write(problem)


def _find_ids(words: list[str], hidden_sessions: QuerySet[Session]) -> list[UUID]:
    if words == ["all"]:
        return list(hidden_sessions.values_list("pk", flat=True))
    try:
        return [UUID(word) for word in words]
    except ValueError:
        raise CommandError("A chat is named by its number, as in the admin.") from None
