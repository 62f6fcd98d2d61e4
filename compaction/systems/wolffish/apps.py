"""The app of Wolffish, which brings its preset."""

from compaction.systems.config import SystemConfig


class Wolffish(SystemConfig):
    default = True
    name = "compaction.systems.wolffish"
    label = "wolffish"
    verbose_name = "Wolffish"
