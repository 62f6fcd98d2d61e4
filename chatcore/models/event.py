"""The event log of a session, which feeds every stream."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.models.session import Session


class SessionEvent(models.Model):
    """One line of the session's log, which feeds every stream. `seq` is given under the session's row lock, so order is commit order."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    name = models.CharField(max_length=32)
    message = models.BigIntegerField(
        null=True, blank=True, help_text="The message a delta belongs to."
    )
    data = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["session", "seq"]
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="one_event_a_seq")]
        indexes = [
            models.Index(
                fields=["message"], condition=Q(name__endswith=".delta"), name="deltas_of_a_message"
            )
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.name}"
