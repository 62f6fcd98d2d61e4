"""Configure the app that keeps conversations inside the context window of their models."""

from typing import Any

from django.apps import AppConfig


class Compaction(AppConfig):
    """The app; Chatcore calls it through `compaction.compactor`."""

    name = "compaction"
    default_auto_field = "django.db.models.BigAutoField"  # as in its migrations

    def ready(self) -> None:
        """Register the checks and the policies of documents, and listen for finished responses."""
        from chatcore.provisioning import registry
        from chatcore.signals import response_completed
        from compaction import checks  # noqa: F401

        registry.register("compaction.provisioned_policies.Policies")

        response_completed.connect(measure_session, dispatch_uid="compaction.measure_and_ask")


def measure_session(sender: Any = None, **response: Any) -> None:
    """Measure the session of a finished response.

    What that takes is loaded now, because most commands see no response and should start fast.
    """
    from compaction.triggers import after_response

    after_response.measure_and_request_run(sender, **response)
