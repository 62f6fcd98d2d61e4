"""The app of links to chats."""

from chatcore.extension import ExtensionConfig
from chatcore.signals import messages_deleted


class Sharing(ExtensionConfig):
    default = True
    name = "chatcore.contrib.sharing"
    label = "sharing"
    verbose_name = "Sharing"
    extension = "chatcore.contrib.sharing.extension.Sharing"

    def ready(self) -> None:
        from chatcore.contrib.sharing.links import forget_titles

        messages_deleted.connect(forget_titles, dispatch_uid="sharing.forget_titles")
