"""The app of memory: the ledger, checks of summaries, and summaries made of frozen spans."""

from django.utils.module_loading import import_string

from chatcore.extension import ExtensionConfig


class Memory(ExtensionConfig):
    default = True
    name = "compaction.memory"
    label = "memory"
    verbose_name = "Memory"
    extension = "compaction.memory.extension.Memory"
    session_memory = "compaction.memory.hooks.Memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let a session have its owner's rules with its next request."""
        from chatcore.signals import pre_request

        pre_request.connect(refresh_rules, dispatch_uid="memory.refresh_rules")


def refresh_rules(signal: object, sender: object, **arguments: object) -> None:
    """Put the owner's rules beside the summary; loaded when it is first needed."""
    import_string("compaction.memory.ledger.rules.refresh_session")(**arguments)
