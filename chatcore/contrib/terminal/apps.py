"""The app of the chat in a terminal: its command."""

from chatcore.extension import ExtensionConfig


class Terminal(ExtensionConfig):
    default = True
    name = "chatcore.contrib.terminal"
    label = "terminal"
    verbose_name = "Terminal"
