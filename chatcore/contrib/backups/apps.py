"""The app of backups: its commands."""

from chatcore.extension import ExtensionConfig


class Backups(ExtensionConfig):
    default = True
    name = "chatcore.contrib.backups"
    label = "backups"
    verbose_name = "Backups"
