"""The app of webhooks."""

from chatcore.extension import ExtensionConfig


class Webhooks(ExtensionConfig):
    default = True
    name = "chatcore.contrib.webhooks"
    label = "webhooks"
    verbose_name = "Webhooks"
    extension = "chatcore.contrib.webhooks.extension.Webhooks"
