"""`chatcore verify`: check every stored invariant."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from chatcore.invariants import violations
from chatcore.models import Session


class Command(BaseCommand):
    help = "Check every stored invariant, of the given sessions or of all; exit 1 and say which do not hold."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sessions", nargs="*", metavar="SESSION")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one line a violation."""
        sessions = Session.objects.filter(pk__in=options["sessions"]) if options["sessions"] else Session.objects.all()
        checked, found = 0, 0
        for session in sessions.iterator():
            checked += 1
            for sentence in violations(session):
                found += 1
                self.stdout.write(f"{session.pk}: {sentence}")
        self.stdout.write(f"{checked} sessions checked, {found} violations")
        if found:
            sys.exit(1)
