"""The history of what the model sees of a session: revisions, and edits of single messages."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.models.message import Message
from chatcore.models.session import Session


class ContextRevision(models.Model):
    """One change of what the model sees of a session; never changed, except that `stale` is set."""

    class Source(models.TextChoices):
        COMPACTION = "compaction"
        EDIT = "edit"
        REWIND = "rewind"
        RESET = "reset"

    # Without an index of its own: that of (session, version) begins with it.
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="revisions", db_index=False
    )
    version = models.PositiveIntegerField()
    summary = models.TextField(null=True, blank=True)
    boundary_seq = models.PositiveIntegerField(null=True, blank=True)
    boundary_timestamp = models.DateTimeField(null=True, blank=True)
    kept_seqs = models.JSONField(
        default=list, help_text="Messages before the boundary that are still sent."
    )
    background = models.TextField(
        blank=True,
        help_text="Reference text that is sent with the summary: structured state, memory.",
    )
    placement = models.JSONField(
        default=dict,
        help_text=(
            "Where the summary is placed and what stands around it (summary_block.py); "
            "empty: in the system text."
        ),
    )
    stale = models.BooleanField(
        default=False, help_text="It covers a message that was edited, superseded or deleted since."
    )
    source = models.CharField(max_length=16, choices=Source.choices)
    restores = models.PositiveIntegerField(
        null=True, blank=True, help_text="The version a rewind went back to."
    )
    run = models.CharField(max_length=64, blank=True, help_text="The compaction run that made it.")
    # Without a constraint, as in the audit log: the number stays when the person is erased.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
        help_text="Who asked for it; null: nobody did.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["session_id", "version"]
        constraints = [
            models.UniqueConstraint(fields=["session", "version"], name="one_revision_a_version")
        ]

    def __str__(self) -> str:
        return f"version {self.version} ({self.source})"


class ContextEdit(models.Model):
    """Another form of a message for the model, in force from one context version to another."""

    class Kind(models.TextChoices):
        PRUNED = "pruned"
        DEDUPLICATED = "deduplicated"
        EXCERPTED = "excerpted"
        IMAGES_STRIPPED = "images_stripped"
        HIDDEN = "hidden"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="context_edits")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="context_edits")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    replacement = models.TextField(blank=True)
    from_version = models.PositiveIntegerField()
    until_version = models.PositiveIntegerField(null=True, blank=True, help_text="Null: in force.")

    class Meta:
        indexes = [
            models.Index(fields=["session"], condition=Q(until_version=None), name="edits_in_force")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.message_id}"
