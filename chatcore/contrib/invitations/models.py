"""An invitation to make an account; its link is not stored, only a digest of it."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def filter_open(self) -> "InvitationQuerySet":
        """Return those whose links still work."""
        return self.filter(used_at=None, expires_at__gt=timezone.now())


class Invitation(models.Model):
    """Lets one person make an account, once and until it expires."""

    digest = models.CharField(max_length=64, unique=True, editable=False)
    note = models.CharField(max_length=200, blank=True, help_text="Whom it is for.")
    groups = models.ManyToManyField(
        Group, blank=True, related_name="+", help_text="The groups that the new account joins."
    )
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    made_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, editable=False)
    used_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )

    goes_with_people = ("used_by",)  # the note says whom it was for

    objects = InvitationQuerySet.as_manager()

    class Meta:
        db_table = "chatcore_invitation"
        ordering = ("-pk",)

    def __str__(self) -> str:
        return self.note or f"Invitation {self.pk}"
