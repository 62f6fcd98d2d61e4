"""The app of legal holds."""

from chatcore.extension import ExtensionConfig


class Holds(ExtensionConfig):
    default = True
    name = "chatcore.contrib.holds"
    label = "holds"
    verbose_name = "Legal holds"
    extension = "chatcore.contrib.holds.extension.Holds"
