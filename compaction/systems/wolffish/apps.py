"""The app of Wolffish, which brings its preset."""

from chatcore.extension import ExtensionConfig


class Wolffish(ExtensionConfig):
    default = True
    name = "compaction.systems.wolffish"
    label = "wolffish"
    verbose_name = "Wolffish"

    def ready(self) -> None:
        """Add the preset."""
        from compaction.systems.wolffish import preset  # noqa: F401
