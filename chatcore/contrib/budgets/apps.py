"""The app of usage and budgets."""

from chatcore.extension import ExtensionConfig


class Budgets(ExtensionConfig):
    default = True
    name = "chatcore.contrib.budgets"
    label = "budgets"
    verbose_name = "Usage and budgets"
    extension = "chatcore.contrib.budgets.extension.Budgets"
