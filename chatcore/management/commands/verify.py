"""`chatcore verify`: check every stored invariant."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Model, QuerySet

from chatcore.models import Project, Session
from chatcore.projects.verification import check_project
from chatcore.sessions.verification import check_session

PAGE_SIZE = 1000


class Command(BaseCommand):
    help = (
        "Check every stored invariant, of the given sessions or of all;"
        " exit 1 and say which do not hold."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sessions", nargs="*", type=UUID, metavar="SESSION")

    def handle(self, *args: object, sessions: Sequence[UUID], **options: object) -> None:
        """Print a line for each violation, then the counts."""
        session_ids = set(sessions)
        rows = Session.objects.all()
        if session_ids:
            rows = rows.filter(pk__in=session_ids)
            missing_ids = session_ids.difference(rows.values_list("pk", flat=True))
            if missing_ids:
                names = ", ".join(str(session_id) for session_id in missing_ids)
                raise CommandError(f"There is no session {names}.")
        session_count = 0
        violation_count = 0
        for session_id in _list_page_by_page(rows):
            session_count += 1
            for sentence in check_session(session_id):
                violation_count += 1
                self.stdout.write(f"{session_id}: {sentence}")
        projects = Project.objects.none() if session_ids else Project.objects.all()
        for project_id in _list_page_by_page(projects):
            for sentence in check_project(project_id):
                violation_count += 1
                self.stdout.write(f"project {project_id}: {sentence}")
        self.stdout.write(f"{session_count} sessions checked, {violation_count} violations")
        if violation_count:
            sys.exit(1)


def _list_page_by_page(rows: QuerySet[Model]) -> Iterator[UUID]:
    """Yield the keys of rows; no query and no transaction is open between two of them."""
    ordered_rows = rows.order_by("pk")
    page = list(ordered_rows.values_list("pk", flat=True)[:PAGE_SIZE])
    while page:
        yield from page
        later_rows = ordered_rows.filter(pk__gt=page[-1])
        page = list(later_rows.values_list("pk", flat=True)[:PAGE_SIZE])
