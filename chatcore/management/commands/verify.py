"""`chatcore verify`: check every stored invariant."""

import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from chatcore.models import Session
from chatcore.sessions.verification import violations


class Command(BaseCommand):
    help = "Check every stored invariant, of the given sessions or of all; exit 1 and say which do not hold."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sessions", nargs="*", type=UUID, metavar="SESSION")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one line a violation."""
        named = set(options["sessions"])
        sessions = Session.objects.filter(pk__in=named) if named else Session.objects.all()
        if missing := named.difference(sessions.values_list("pk", flat=True)) if named else set():
            raise CommandError(f"There is no session {', '.join(map(str, missing))}.")
        checked, found = 0, 0
        for session in sessions.iterator():
            checked += 1
            for sentence in violations(session):
                found += 1
                self.stdout.write(f"{session.pk}: {sentence}")
        self.stdout.write(f"{checked} sessions checked, {found} violations")
        if found:
            sys.exit(1)
