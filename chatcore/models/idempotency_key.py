"""Keys by which clients repeat a request that creates something, and what it was answered."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class IdempotencyKey(models.Model):
    """A key that a user sent with a request, for a day; turns have theirs in their own row.

    The row is inserted before anything is created. Without a `status` the first request runs.
    """

    # Without an index of its own: that of (owner, key) begins with it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.CharField(max_length=255)
    payload_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    # Not a foreign key: a deleted session takes no notice of it, and a replay looks for it.
    session_id = models.UUIDField(null=True, help_text="The created session, which is shown.")
    body = models.TextField(
        blank=True, help_text="Any other answer, encrypted: it may hold a secret."
    )
    lease_until = models.DateTimeField(
        null=True, editable=False, help_text="Until when the first request is believed to run."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    secret_columns = ("body",)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="one_request_of_a_key")
        ]
        indexes = [models.Index(fields=["created_at"], name="keys_by_time")]

    def __str__(self) -> str:
        return self.key
