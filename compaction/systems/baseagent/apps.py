"""The app of BaseAgent, which brings its preset."""

from chatcore.extension import ExtensionConfig


class BaseAgent(ExtensionConfig):
    default = True
    name = "compaction.systems.baseagent"
    label = "baseagent"
    verbose_name = "BaseAgent"

    def ready(self) -> None:
        """Add the preset."""
        from compaction.systems.baseagent import preset  # noqa: F401
