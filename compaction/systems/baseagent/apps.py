"""The app of BaseAgent, which brings its preset."""

from compaction.systems.config import SystemConfig


class BaseAgent(SystemConfig):
    default = True
    name = "compaction.systems.baseagent"
    label = "baseagent"
    verbose_name = "BaseAgent"
