"""Configure the app that keeps conversations inside the context window of their models."""

from typing import Any

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured


class Compaction(AppConfig):
    """The app; the host calls it through `compaction.compactor`."""

    name = "compaction"
    default_auto_field = "django.db.models.BigAutoField"  # as in its migrations

    def import_models(self) -> None:
        """Import the models, which refer to the host's model of a conversation.

        Raises ImproperlyConfigured where the settings name none. System checks run later.
        """
        from compaction import project_settings

        errors = project_settings.list_fatal_errors()
        if errors:
            raise ImproperlyConfigured(" ".join(f"{error.msg} {error.hint}" for error in errors))
        super().import_models()

    def ready(self) -> None:
        """Register the system checks and listen for finished responses."""
        from compaction import checks
        from compaction.backends import registry

        if not checks.check_backend():  # otherwise the check is what stops the start
            registry.get_backend().subscribe_to_responses(
                measure_session, uid="compaction.measure_and_ask"
            )


def measure_session(sender: Any = None, **response: Any) -> None:
    """Measure the session of a finished response.

    What that takes is loaded now, because most commands see no response and should start fast.
    """
    from compaction.triggers import after_response

    after_response.measure_and_request_run(sender, **response)
