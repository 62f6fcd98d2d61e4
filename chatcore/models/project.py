"""Projects: instructions, rules and files that several chats of one owner share."""

import uuid
from functools import partial

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models, transaction
from django.db.models.deletion import Collector
from django.utils import timezone

from chatcore import signals
from chatcore.base.databases.fields import CascadingForeignKey
from chatcore.models.session import are_titles_hidden


class ProjectQuerySet(models.QuerySet["Project"]):
    """Queries of projects."""

    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> "ProjectQuerySet":
        """Return this user's projects; other projects do not exist for them."""
        return self.filter(owner=user)


class Project(models.Model):
    """What the chats of a project are told before their messages, from their next request on."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="projects"
    )
    name = models.CharField(max_length=200)
    instructions = models.TextField(blank=True)
    rules = models.JSONField(default=list, help_text="Lines, word for word, in their order.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    edited_at = models.DateTimeField(
        default=timezone.now, editable=False, help_text="When what its chats are told last changed."
    )

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return str(self.id) if are_titles_hidden.get() else self.name


def cascade_to_content(
    collector: Collector, field: models.ForeignKey, rows: "models.QuerySet[ProjectFile]", using: str
) -> None:
    """Delete the files with their project, and what the store has of them after the commit."""
    names = list(rows.exclude(store_name="").values_list("store_name", flat=True))
    announce = partial(signals.files_released.send, sender=ProjectFile, names=names)
    transaction.on_commit(announce, using=using, robust=True)
    models.CASCADE(collector, field, rows, using)


class ProjectFile(models.Model):
    """A file of a project, which is sent as its text. Its name is a label."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = CascadingForeignKey(Project, on_delete=cascade_to_content, related_name="files")
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField(help_text="Bytes.")
    sent_chars = models.PositiveIntegerField(
        help_text="Characters that it takes in a request, with its fence."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    store_name = models.CharField(
        max_length=100,
        blank=True,
        db_index=True,
        help_text="Of its bytes in the store of files and outputs; empty: they are in the row.",
    )
    # The large columns are the last ones, as in Attachment.
    data = models.BinaryField(help_text="Empty where the text is the file.")
    text = models.TextField()

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return str(self.id) if are_titles_hidden.get() else self.name
