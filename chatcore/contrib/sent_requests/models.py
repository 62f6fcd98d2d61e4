"""The stored requests, and their texts."""

from django.db import models
from django.utils import timezone

from chatcore.models import Message, Session


class SentRequest(models.Model):
    """The request that an answer came from.

    Messages that were sent as they are stored are only numbers here. All other texts are rows of
    SentText, named by their digests, so that requests which share a text store it once.
    """

    answer = models.OneToOneField(
        Message, on_delete=models.CASCADE, primary_key=True, related_name="sent_request"
    )
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="sent_requests")
    layout = models.JSONField(help_text="The parts in their order (records.py).")

    class Meta:
        db_table = "chatcore_sentrequest"

    def __str__(self) -> str:
        return f"request of message {self.answer_id}"


class SentText(models.Model):
    """A text that requests of a session have sent and that is no stored message."""

    # Without an index of its own: that of (session, digest) begins with it.
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="sent_texts", db_index=False
    )
    digest = models.CharField(max_length=32)
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "chatcore_senttext"
        constraints = [
            models.UniqueConstraint(fields=["session", "digest"], name="one_sent_text_a_digest")
        ]

    def __str__(self) -> str:
        return self.digest
