"""The names of the events that compaction announces to those who watch a session."""

from enum import StrEnum


class CompactionEvent(StrEnum):
    """The name of an event. The host may know more events; these it must know."""

    COMPACTION_STARTED = "compaction.started"
    COMPACTION_PROGRESS = "compaction.progress"
    COMPACTION_APPLIED = "compaction.applied"
    COMPACTION_SKIPPED = "compaction.skipped"
    COMPACTION_FAILED = "compaction.failed"
    CONTEXT_USAGE = "context.usage"
    CONTEXT_TRIMMED = "context.trimmed"
