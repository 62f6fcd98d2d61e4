"""Prompts: texts that their owner writes once and uses again."""

import uuid

from django.conf import settings
from django.core.validators import MaxLengthValidator, RegexValidator
from django.db import models
from django.utils import timezone

from chatcore.models import Project

MAX_PROMPTS = 100  # of a user: the page asks for all at once
MAX_NAME_CHARS = 32
MAX_TEXT_CHARS = 32_000
MAX_TOTAL_CHARS = 500_000  # of all texts of a user
NAME = RegexValidator(r"^[\w-]+\Z", "Letters, digits, _ and -, without a space.")
_LENGTH = MaxLengthValidator(MAX_NAME_CHARS)


def lower_name(name: str) -> str:
    """Return a name as it is stored. Raises ValidationError: some letters become two."""
    name = name.lower()
    NAME(name)
    _LENGTH(name)
    return name


class Prompt(models.Model):
    """A text that `/name` puts into the composer: in all chats, or in those of a project."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="prompts"
    )
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, null=True, blank=True, related_name="prompts"
    )
    name = models.CharField(max_length=MAX_NAME_CHARS, help_text="In lower case.")
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="prompt_names")]

    def __str__(self) -> str:
        return f"/{self.name}"
