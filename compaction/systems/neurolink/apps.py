"""The app of NeuroLink, which brings its preset."""

from chatcore.extension import ExtensionConfig


class NeuroLink(ExtensionConfig):
    default = True
    name = "compaction.systems.neurolink"
    label = "neurolink"
    verbose_name = "NeuroLink"

    def ready(self) -> None:
        """Add the preset."""
        from compaction.systems.neurolink import preset  # noqa: F401
