"""The tables of standing rules: what a person wants in every session."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class StandingRule(models.Model):
    """A line that stands in the ledger of all sessions of its owner.

    Only a person makes one: nothing that is said in a conversation does.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="standing_rules"
    )
    kind = models.CharField(max_length=16, help_text="As of a line of the ledger.")
    text = models.TextField()
    line = models.ForeignKey(
        "compaction.LedgerLine",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="standing_rules",
        help_text="The line that it was lifted from; null: a person wrote it, or the line is gone.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "line"], name="one_rule_of_a_line"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class SentRules(models.Model):
    """Which standing rules stand in a session's context, and in which version of it."""

    session = models.OneToOneField(
        "chatcore.Session",
        on_delete=models.CASCADE,
        related_name="+",
        primary_key=True,
    )
    fingerprint = models.CharField(max_length=64)
    version = models.PositiveIntegerField()

    def __str__(self) -> str:
        return str(self.session_id)
