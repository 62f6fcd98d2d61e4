"""The app of prompts."""

from chatcore.extension import ExtensionConfig


class Prompts(ExtensionConfig):
    default = True
    name = "chatcore.contrib.prompts"
    label = "prompts"
    verbose_name = "Prompts"
    extension = "chatcore.contrib.prompts.extension.Prompts"
