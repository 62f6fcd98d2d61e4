"""What the APIs of others remember besides sessions: responses, and histories without a name."""

import uuid

from django.db import models
from django.utils import timezone

from chatcore.models import Session, Turn


class StoredResponse(models.Model):
    """One response of the API: a stretch of a session, from new input to the end of an answer.

    Its text is in the session's messages. A turn that waits for a client's tools has several
    responses, one for each time it went on. One without a turn only made room.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="responses")
    turn = models.ForeignKey(
        Turn, on_delete=models.CASCADE, null=True, blank=True, related_name="responses"
    )
    previous = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The response that it continues.",
    )
    after_seq = models.PositiveIntegerField(
        default=0, help_text="The number that its first input message had to exceed."
    )
    input_seq = models.PositiveIntegerField(
        default=0, help_text="The last message of its input; its output follows."
    )
    after_event_seq = models.PositiveBigIntegerField(
        default=0, help_text="The number of an event before all events of its output."
    )
    input_key = models.CharField(
        max_length=64,
        blank=True,
        db_index=True,
        help_text="A hash of the conversation up to its input, to recognize it when it comes back.",
    )
    client = models.CharField(
        max_length=64,
        default="",
        db_default="",
        blank=True,
        help_text="A hash of the user and the token, where the client names no conversation.",
    )
    request = models.JSONField(default=dict, help_text="The fields that the response repeats.")
    system_texts = models.JSONField(
        default=list, help_text="Texts of the system and the developer in the conversation so far."
    )
    compaction = models.JSONField(
        null=True, blank=True, help_text="The compaction that began it, if there was one."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "chatcore_storedresponse"
        ordering = ["session_id", "created_at"]
        indexes = [
            models.Index(fields=["-created_at"], name="responses_by_time"),
            models.Index(fields=["client", "-created_at"], name="responses_of_client"),
        ]

    def __str__(self) -> str:
        return f"resp_{self.id.hex}"


class HistoryKey(models.Model):
    """The newest history that a client sent whole, in a conversation that it does not name.

    There is one row for each conversation. Without `session` it is of a request that was answered
    without one: the conversation is stored from the request on that goes on from there. A row with
    `summary` has no key: it is what a program asked for, to send it in place of older messages.
    """

    key = models.CharField(
        max_length=64, db_index=True, help_text="A hash of the messages, the user and the token."
    )
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    client = models.CharField(
        max_length=64,
        default="",
        db_default="",
        blank=True,
        help_text="A hash of the user and the token.",
    )
    summary = models.TextField(
        default="", db_default="", blank=True, help_text="A summary that its program asked for."
    )
    used_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        indexes = [
            models.Index(fields=["client", "-used_at"], name="histories_of_client"),
            models.Index(
                fields=["used_at"],
                condition=models.Q(session__isnull=True),
                name="histories_without_session",
            ),
        ]

    def __str__(self) -> str:
        return self.key
