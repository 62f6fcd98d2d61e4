"""The stages by the names policies give them; a new one is a file here and a line in this table."""

from compaction.core.stages.base import Stage
from compaction.core.stages.summarize import summarize

STAGES: dict[str, Stage] = {"summarize": summarize}
