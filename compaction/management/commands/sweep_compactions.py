"""`chatcore sweep_compactions`: send compaction runs again that the queue or a worker lost."""

from django.core.management.base import BaseCommand

from compaction.runs import engine


class Command(BaseCommand):
    help = "Send runs to the queue again that it lost, and runs whose worker died."

    def handle(self, *args: object, **options: object) -> None:
        """Send them, and print how many there were."""
        self.stdout.write(f"{engine.resend_lost_runs()} runs sent to the queue again")
