"""The tables of leaves: what was written of spans, and which summaries are made of it."""

from django.db import models
from django.utils import timezone


class SummaryLeaf(models.Model):
    """What was written of one span of messages, once. See compaction/core/leaves/."""

    class Kind(models.TextChoices):
        SPAN = "span"
        TEXT = "text"
        DIGEST = "digest"

    # Without an index of its own: that of (session, last_seq) begins with it.
    session = models.ForeignKey(
        "chatcore.Session",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
    )
    run = models.ForeignKey(
        "compaction.CompactionRun",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    first_seq = models.PositiveIntegerField(help_text="Number of the first message.")
    last_seq = models.PositiveIntegerField(help_text="Number of the last message.")
    text = models.TextField()
    tokens = models.PositiveIntegerField(help_text="Tokens of the text, as the policy counts.")
    fingerprint = models.CharField(
        max_length=64, blank=True, help_text="Of what a span was written from."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        app_label = "compaction"
        ordering = ["first_seq", "id"]
        indexes = [models.Index(fields=["session", "last_seq"], name="leaves_of_a_session")]
        verbose_name_plural = "summary leaves"

    def __str__(self) -> str:
        return f"messages {self.first_seq} to {self.last_seq}"


class LeafComposition(models.Model):
    """Which leaves a summary was composed of; the summary is known by the fingerprint of its text.

    A summary without such a row was not composed: a person edited it, or another policy wrote it.
    """

    session = models.ForeignKey(
        "chatcore.Session",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
    )
    fingerprint = models.CharField(max_length=64)
    leaf_ids = models.JSONField(default=list, help_text="Keys of the leaves, in order.")
    last_seq = models.PositiveIntegerField(help_text="Number of the last message.")

    class Meta:
        app_label = "compaction"
        constraints = [
            models.UniqueConstraint(
                fields=["session", "fingerprint"], name="one_composition_a_summary"
            )
        ]

    def __str__(self) -> str:
        return f"{len(self.leaf_ids)} leaves up to message {self.last_seq}"
