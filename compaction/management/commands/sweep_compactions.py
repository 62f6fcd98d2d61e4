"""`chatcore sweep_compactions`: bring back compaction runs that the queue or a worker lost."""

from typing import Any

from django.core.management.base import BaseCommand

from compaction.runs import engine


class Command(BaseCommand):
    help = "Tell the queue again of runs it forgot, and of runs whose worker died."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print how many."""
        self.stdout.write(f"{engine.resend_lost_runs()} runs sent to the queue again")
