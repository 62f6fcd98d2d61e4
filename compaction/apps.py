"""Configure the app that keeps conversations inside the context window of their models."""

from django.apps import AppConfig


class Compaction(AppConfig):
    """The app; the host calls it through `compaction.compactor`."""

    name = "compaction"

    def ready(self) -> None:
        """Register the system checks and listen for finished responses."""
        from compaction import checks  # noqa: F401  # importing it registers the checks
        from compaction.triggers import after_response

        after_response.connect_receivers()
