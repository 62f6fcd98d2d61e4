"""The app of the embedded language model."""

from chatcore.extension import ExtensionConfig


class LocalModel(ExtensionConfig):
    default = True
    name = "chatcore.contrib.local_model"
    label = "local_model"
    verbose_name = "Embedded model"
    extension = "chatcore.contrib.local_model.extension.LocalModelExtension"
