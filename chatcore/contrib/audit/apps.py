"""The app of the audit log."""

from chatcore.extension import ExtensionConfig


class Audit(ExtensionConfig):
    default = True
    name = "chatcore.contrib.audit"
    label = "audit"
    verbose_name = "Audit log"
    extension = "chatcore.contrib.audit.extension.Audit"

    def ready(self) -> None:
        """Begin to note who signs in."""
        from chatcore.contrib.audit import sign_ins

        sign_ins.connect()
