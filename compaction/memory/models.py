"""The tables of memory: the ledger, standing rules, and the segments of summaries."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class LedgerLine(models.Model):
    """A rule, decision or exact value of a session, word for word as it was said."""

    class Kind(models.TextChoices):
        RULE = "rule"
        PREFERENCE = "preference"
        DECISION = "decision"
        COMMITMENT = "commitment"
        FACT = "fact"
        VALUE = "value"

    class Status(models.TextChoices):
        CURRENT = "current"
        SUPERSEDED = "superseded"
        DROPPED = "dropped"

    class Holds(models.TextChoices):
        ANSWER = "answer"
        TASK = "task"
        ALWAYS = "always"

    # Without an index of its own: that of (session, seq) begins with it.
    session = models.ForeignKey(
        "chatcore.Session",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
    )
    kind = models.CharField(max_length=16, choices=Kind.choices)
    text = models.TextField()
    original_text = models.TextField(
        blank=True, help_text="As it was recognized; empty: a person wrote the line."
    )
    seq = models.PositiveIntegerField(
        null=True, blank=True, help_text="Number of the message it was said in; null: of none."
    )
    role = models.CharField(max_length=16, blank=True)
    key = models.TextField(blank=True, help_text="What it is about; a newer line supersedes it.")
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.CURRENT)
    superseded_by = models.PositiveIntegerField(
        null=True, blank=True, help_text="Number of the message that said otherwise."
    )
    pinned = models.BooleanField(default=False)
    is_edited = models.BooleanField(
        default=False, help_text="A person changed it, so recognition leaves it alone."
    )
    is_withdrawn = models.BooleanField(
        default=False, help_text="Its message is superseded, so the line is not sent."
    )
    holds = models.CharField(
        max_length=8,
        choices=Holds.choices,
        blank=True,
        default="",
        db_default="",
        help_text="How long, as the summary model said; empty: it was recognized by code.",
    )
    replaces = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        help_text="Which line the summary model said that it replaces: message and hash.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "compaction_ledgerline"
        ordering = ["seq", "id"]
        indexes = [models.Index(fields=["session", "seq"], name="lines_of_a_session")]

    def __str__(self) -> str:
        return f"{self.kind} of message {self.seq}"


class StandingRule(models.Model):
    """A line that stands in the ledger of all sessions of its owner.

    Only a user makes one: nothing that is said in a conversation does.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="standing_rules"
    )
    kind = models.CharField(max_length=16, help_text="As of a line of the ledger.")
    text = models.TextField()
    line = models.ForeignKey(
        LedgerLine,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="standing_rules",
        help_text="The line that it was lifted from; null: a person wrote it, or the line is gone.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "compaction_standingrule"
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "line"], name="one_rule_of_a_line"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class SentRules(models.Model):
    """Which standing rules stand in a session's context, and in which version of it.

    With `left_out` none does: the owner wants a session that does without.
    """

    session = models.OneToOneField(
        "chatcore.Session",
        on_delete=models.CASCADE,
        related_name="+",
        primary_key=True,
    )
    fingerprint = models.CharField(max_length=64)
    version = models.PositiveIntegerField()
    left_out = models.BooleanField(default=False, db_default=False)

    class Meta:
        db_table = "compaction_sentrules"

    def __str__(self) -> str:
        return str(self.session_id)


class SummaryLeaf(models.Model):
    """What was written of one span of messages, once. See compaction/memory/core/segments/."""

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
        db_table = "compaction_summaryleaf"
        ordering = ["first_seq", "id"]
        indexes = [models.Index(fields=["session", "last_seq"], name="leaves_of_a_session")]
        verbose_name_plural = "summary leaves"

    def __str__(self) -> str:
        return f"messages {self.first_seq} to {self.last_seq}"


class LeafComposition(models.Model):
    """Which segments a summary was composed of; a summary is known by the fingerprint of its text.

    A summary without such a row was not composed: a user edited it, or another policy wrote it.
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
        db_table = "compaction_leafcomposition"
        constraints = [
            models.UniqueConstraint(
                fields=["session", "fingerprint"], name="one_composition_a_summary"
            )
        ]

    def __str__(self) -> str:
        return f"{len(self.leaf_ids)} segments up to message {self.last_seq}"
