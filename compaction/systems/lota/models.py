"""The table of Lota."""

from django.db import models


class WorkingState(models.Model):
    """What a conversation is about: structured state and memory, updated by summaries."""

    session = models.OneToOneField(
        "chatcore.Session",
        on_delete=models.CASCADE,
        related_name="+",
        primary_key=True,
    )
    state = models.JSONField(
        default=dict, help_text="Lists of sentences by section: decisions, constraints, tasks …"
    )
    memory = models.JSONField(
        default=list, help_text="Entries not yet folded into the memory's summary, oldest first."
    )
    memory_summary = models.TextField(blank=True)

    class Meta:
        db_table = "compaction_workingstate"

    def __str__(self) -> str:
        return str(self.session_id)
