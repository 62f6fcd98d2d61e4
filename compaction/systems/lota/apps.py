"""The app of Lota: the structured state and the memory that go with a summary."""

from compaction.systems.config import SystemConfig


class Lota(SystemConfig):
    default = True
    name = "compaction.systems.lota"
    label = "lota"
    verbose_name = "Lota"
    session_memory = "compaction.systems.lota.hooks.Lota"
    default_auto_field = "django.db.models.BigAutoField"
