"""Configure the app that keeps conversations inside the context window of their models."""

from collections.abc import Callable

from django.utils.module_loading import import_string

from chatcore.extension import ExtensionConfig


class Compaction(ExtensionConfig):
    """The app; Chatcore asks it through `compaction.compactor` and its extension."""

    default = True
    name = "compaction"
    extension = "compaction.extension.Compaction"
    default_auto_field = "django.db.models.BigAutoField"  # as in its migrations

    def ready(self) -> None:
        """Register the checks and the policies of documents, and listen to conversations."""
        from chatcore import signals
        from chatcore.setup import registry
        from compaction.policies import checks  # noqa: F401

        registry.register("compaction.policies.documents.Policies")
        for signal, path in (
            (signals.response_completed, "runs.receivers.check_response"),
            (signals.turn_halted, "runs.receivers.request_run_after_halt"),
            (signals.messages_deleted, "runs.receivers.forget_messages"),
            (signals.messages_superseded, "runs.receivers.supersede_messages"),
            (signals.context_rewound, "runs.history.follow_rewind"),
            (signals.history_summarized, "runs.client_summaries.install_client_summary"),
            (signals.session_forked, "runs.receivers.copy_state_to_fork"),
            (signals.model_confirmed, "sessions.calibration.forget_window"),
        ):
            receiver = build_receiver(f"compaction.{path}")
            signal.connect(receiver, weak=False, dispatch_uid=f"compaction.{path}")


def build_receiver(path: str) -> Callable[..., None]:
    """Return a receiver that loads the function of this path when it is first needed.

    Most commands see no conversation and should start fast.
    """

    def receive(signal: object, sender: object, **arguments: object) -> None:
        import_string(path)(**arguments)

    return receive
