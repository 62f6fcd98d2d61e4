"""Keep the task path that rows queued by version 0.2 name. Remove this module in version 0.4."""

from compaction.runs.tasks import execute as execute
