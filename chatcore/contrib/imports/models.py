"""Imports of other products' chats: what is sent, how far it has come, and what became of each."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.models.session import Session


class Import(models.Model):
    """A run through an export. `position` says how many of its pieces are done.

    A worker claims it by a lease, and another goes on where a dead one stopped.
    """

    class Status(models.TextChoices):
        RECEIVING = "receiving"
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    OPEN_STATUSES = (Status.RECEIVING, Status.WAITING, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="imports"
    )
    product = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.RECEIVING)
    detail = models.TextField(blank=True, help_text="Why nothing came in.")
    position = models.PositiveIntegerField(default=0)
    came = models.PositiveIntegerField(default=0)
    partly = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    known = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "chatcore_import"
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=Q(status__in=("receiving", "waiting", "running")),
                name="open_imports",
            )
        ]

    def __str__(self) -> str:
        return str(self.pk)


class ImportFile(models.Model):
    """A file of an export. It is complete when `received` is `size`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # The word `import` is Python's.
    belongs_to = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="files")
    number = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    received = models.PositiveBigIntegerField(default=0, help_text="Bytes.")

    class Meta:
        db_table = "chatcore_importfile"
        ordering = ["number"]

    def __str__(self) -> str:
        return self.name


class ImportPart(models.Model):
    """A piece of an uploaded file. It is deleted when the import has ended."""

    file = models.ForeignKey(ImportFile, on_delete=models.CASCADE, related_name="parts")
    offset = models.PositiveBigIntegerField(help_text="Bytes before it.")
    size = models.PositiveIntegerField(help_text="Bytes.")
    data = models.BinaryField()

    class Meta:
        db_table = "chatcore_importpart"
        constraints = [
            models.UniqueConstraint(fields=["file", "offset"], name="one_part_an_offset")
        ]

    def __str__(self) -> str:
        return str(self.offset)


class ImportProblem(models.Model):
    """A chat that came in only in part, or not, with the reasons in words and its original."""

    belongs_to = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="problems")
    session = models.ForeignKey(
        Session, on_delete=models.SET_NULL, null=True, related_name="+", help_text="If it came."
    )
    title = models.CharField(max_length=200, blank=True)
    reasons = models.JSONField(default=list)
    original_name = models.CharField(max_length=100, blank=True)
    original_size = models.PositiveIntegerField(
        default=0, help_text="Bytes before they are packed."
    )
    original = models.BinaryField(help_text="As it stands in the export, packed by zlib.")

    class Meta:
        db_table = "chatcore_importproblem"
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.title


class ImportedChat(models.Model):
    """A chat of another product that is here, so that the same export adds only what is new."""

    # Without an index of its own: that of the constraint begins with it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="imported_chats",
        db_index=False,
    )
    belongs_to = models.ForeignKey(
        Import, on_delete=models.SET_NULL, null=True, related_name="chats"
    )
    product = models.CharField(max_length=40)
    foreign_id = models.CharField(max_length=255)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="imported_as")
    digests = models.JSONField(
        default=list, help_text="Of each message that was shown when it came, in order."
    )
    other_digest = models.CharField(max_length=64, blank=True, help_text="Of all messages.")
    last_seq = models.PositiveIntegerField(default=0, help_text="The session's when it came.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "chatcore_importedchat"
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "product", "foreign_id"], name="one_session_a_foreign_chat"
            )
        ]

    def __str__(self) -> str:
        return self.foreign_id
