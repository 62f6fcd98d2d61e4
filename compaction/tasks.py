"""Keep the task path that rows queued by version 0.1 name. Remove this module in version 0.3."""

from compaction.runs.tasks import execute as execute
