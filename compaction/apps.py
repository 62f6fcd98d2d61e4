"""Making room: a pure core, and an app around it that hears of responses and is asked before requests."""

from django.apps import AppConfig


class Compaction(AppConfig):
    name = "compaction"

    def ready(self) -> None:
        """Listen for finished responses; guard the settings."""
        from compaction.triggers import after_response

        after_response.connect_receivers()
