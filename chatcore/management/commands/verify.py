"""`chatcore verify`: check every stored invariant."""

import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from chatcore.models import Session
from chatcore.sessions.verification import find_violations


class Command(BaseCommand):
    help = (
        "Check every stored invariant, of the given sessions or of all;"
        " exit 1 and say which do not hold."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sessions", nargs="*", type=UUID, metavar="SESSION")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each violation, then the counts."""
        session_ids = set(options["sessions"])
        sessions = Session.objects.all()
        if session_ids:
            sessions = sessions.filter(pk__in=session_ids)
            missing_ids = session_ids.difference(sessions.values_list("pk", flat=True))
            if missing_ids:
                names = ", ".join(str(session_id) for session_id in missing_ids)
                raise CommandError(f"There is no session {names}.")
        session_count = 0
        violation_count = 0
        for session in sessions.iterator():
            session_count += 1
            for sentence in find_violations(session):
                violation_count += 1
                self.stdout.write(f"{session.pk}: {sentence}")
        self.stdout.write(f"{session_count} sessions checked, {violation_count} violations")
        if violation_count:
            sys.exit(1)
