"""The app of NeuroLink, which brings its preset."""

from compaction.systems.config import SystemConfig


class NeuroLink(SystemConfig):
    default = True
    name = "compaction.systems.neurolink"
    label = "neurolink"
    verbose_name = "NeuroLink"
