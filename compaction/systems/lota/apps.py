"""The app of Lota: the structured state and the memory that go with a summary."""

from chatcore.extension import ExtensionConfig


class Lota(ExtensionConfig):
    default = True
    name = "compaction.systems.lota"
    label = "lota"
    verbose_name = "Lota"
    session_memory = "compaction.systems.lota.hooks.Lota"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Add the preset."""
        from compaction.systems.lota import preset  # noqa: F401
