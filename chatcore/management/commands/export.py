"""`chatcore export`: write a session to standard output as JSON."""

import json
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.models import Session
from chatcore.transfer import exporter


class Command(BaseCommand):
    help = "Write SESSION to standard output as JSON, which `import` reads."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session", type=UUID, help="The session's id.")

    def handle(self, *args: object, session: UUID, **options: object) -> None:
        """Print one JSON object."""
        try:
            session_row = Session.objects.select_related("model__provider").get(pk=session)
        except Session.DoesNotExist:
            raise CommandError(f"There is no session {session}.") from None
        self.stdout.write(
            json.dumps(exporter.export_session(session_row), ensure_ascii=False, indent=1)
        )
