"""The app of imports."""

from chatcore.extension import ExtensionConfig


class Imports(ExtensionConfig):
    default = True
    name = "chatcore.contrib.imports"
    label = "imports"
    verbose_name = "Imports"
    extension = "chatcore.contrib.imports.extension.Imports"
