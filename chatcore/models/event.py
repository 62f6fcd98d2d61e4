"""The event log of a session, which feeds every stream."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.models.owned_row import OwnedQuerySet, OwnedRow
from chatcore.models.session import Session


class SessionEvent(OwnedRow):
    """An event of a session's log.

    Its `seq` is taken while the session's row is locked, so events become visible in the order of
    their numbers, and a reader that continues after a number misses none.
    """

    # Without an index of its own: that of (session, seq) begins with it.
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="events", db_index=False
    )
    seq = models.PositiveBigIntegerField()
    name = models.CharField(max_length=32)
    message = models.BigIntegerField(
        null=True, blank=True, help_text="The message a delta belongs to."
    )
    data = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    objects = OwnedQuerySet["SessionEvent"].as_manager()

    class Meta:
        ordering = ["session_id", "seq"]
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="one_event_a_seq")]
        indexes = [
            # Only deltas name a message. (SQLite would not use an index with a condition by LIKE.)
            models.Index(
                fields=["message"],
                condition=Q(message__isnull=False),
                name="deltas_of_a_message",
            ),
            models.Index(
                fields=["session", "seq"],
                condition=Q(name="context.usage"),  # EventType.CONTEXT_USAGE
                name="usage_of_a_session",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.name}"
