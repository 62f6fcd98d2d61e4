"""The app of a system."""

from importlib import import_module

from chatcore.extension import ExtensionConfig


class SystemConfig(ExtensionConfig):
    """An app whose module `preset` adds what the system brings."""

    def ready(self) -> None:
        """Add the preset."""
        import_module(f"{self.name}.preset")
