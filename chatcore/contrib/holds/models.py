"""A hold: what a user has written may not be deleted while it lasts."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class HoldQuerySet(models.QuerySet["Hold"]):
    """Queries for holds."""

    def filter_active(self) -> "HoldQuerySet":
        """Select the holds that have not ended."""
        return self.filter(ended_at=None)


class Hold(models.Model):
    """Keeps everything of a user from being deleted, from its creation until it is ended."""

    # A user on hold cannot be deleted. An ended hold goes with its user, and the audit log says so.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=500, help_text="For the operators; the user is not shown.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
    )
    ended_at = models.DateTimeField(null=True, blank=True, help_text="Empty: it lasts.")

    objects = HoldQuerySet.as_manager()
    goes_with_people = ("user",)
    is_exported = False  # to its user: the reason is the operators'

    class Meta:
        db_table = "chatcore_hold"
        verbose_name = "legal hold"

    def __str__(self) -> str:
        state = "ended" if self.ended_at else "on hold"
        return f"{self.user}: {state}"
