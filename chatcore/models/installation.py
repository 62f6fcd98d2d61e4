"""What one installation knows of itself: its key, and how far its clock can be believed."""

import uuid

from django.db import models
from django.utils import timezone


class Installation(models.Model):
    """The only row of its table.

    `key` tells databases apart that share a store of files. `clock_read_at` is the time of the
    newest round of deletion, `clock_boot` and `clock_seconds` are the start of the machine and the
    seconds from it until then, as far as they are known, `clock_doubted_at` the first one after a
    jump of the clock, and `deletion_confirmed_at` when staff confirmed
    that a round may delete a large share. The days of what nobody had a time to live for before
    count from `retention_since`.
    """

    key = models.UUIDField(default=uuid.uuid4, editable=False)
    clock_read_at = models.DateTimeField(null=True, editable=False)
    clock_boot = models.CharField(max_length=64, blank=True, default="", editable=False)
    clock_seconds = models.FloatField(default=0, editable=False)
    clock_doubted_at = models.DateTimeField(null=True, editable=False)
    deletion_confirmed_at = models.DateTimeField(null=True, editable=False)
    retention_since = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return str(self.key)

    @classmethod
    def load(cls) -> "Installation":
        """Return the row, which is made at its first use."""
        return cls._default_manager.get_or_create(pk=1)[0]
