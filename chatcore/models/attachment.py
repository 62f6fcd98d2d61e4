"""Files that belong to messages."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.models.message import Message
from chatcore.models.session import Session


class Attachment(models.Model):
    """A file that belongs to a message. Its name is a label and never reaches the file system."""

    class Kind(models.TextChoices):
        FILE = "file"
        OUTPUT = "output"  # the full output of a tool; its message holds only a part

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="attachments")
    message = models.ForeignKey(
        Message,
        on_delete=models.CASCADE,
        related_name="attachments",
        null=True,
        blank=True,
        help_text="Null: uploaded, not yet sent.",
    )
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.FILE)
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField(help_text="Bytes.")
    token_estimate = models.PositiveIntegerField(
        default=0, help_text="Estimated tokens of the text, or of the image."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # The large columns are the last ones, because SQLite reads a row only up to the last column
    # that a query names.
    data = models.BinaryField()
    text = models.TextField(blank=True, help_text="The text for a model that cannot open the file.")

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(message=None), name="attachments_not_sent"
            ),
            models.Index(
                fields=["session"], condition=Q(kind="output"), name="outputs_of_a_session"
            ),
            models.Index(fields=["session"], condition=Q(kind="file"), name="files_of_a_session"),
        ]

    def __str__(self) -> str:
        return self.name
