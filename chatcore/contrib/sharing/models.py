"""A link under which anybody reads a chat as it was; the link is not stored, only its digest."""

import base64
import hashlib
import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from chatcore.extension import exclude_kept
from chatcore.models import Message, Session
from chatcore.models.message import MessageQuerySet


class ShareQuerySet(models.QuerySet["Share"]):
    """Queries of shares."""

    def filter_open(self) -> "ShareQuerySet":
        """Select those whose links still work.

        A deleted session ends them, and so does an owner who is switched off, or of whom everything
        is kept.
        """
        now = timezone.now()
        shares = self.filter(
            Q(expires_at=None) | Q(expires_at__gt=now),
            revoked_at=None,
            session__discard_at=None,
            owner__is_active=True,
        )
        return exclude_kept(shares, "owner")


class Share(models.Model):
    """The messages of a session that a link shows: those that were current when it was made."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="shares"
    )
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="shares")
    title = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    last_seq = models.PositiveIntegerField(help_text="The newest message that it shows.")
    spans = models.JSONField(
        default=list,
        help_text="[first, last] numbers of messages. What was superseded then is in no span.",
    )
    with_tools = models.BooleanField(default=False)
    with_files = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ShareQuerySet.as_manager()

    class Meta:
        db_table = "chatcore_share"
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.session_id} up to {self.last_seq}"

    @property
    def token(self) -> str:
        """The secret part of its link, made of the id and the server's secret key.

        Empty where the link was made otherwise: by an earlier version, or with another secret key.
        """
        mac = salted_hmac("chatcore.contrib.sharing", self.pk.hex, algorithm="sha256").digest()
        token = base64.urlsafe_b64encode(mac).decode().rstrip("=")
        is_own = not self.digest or constant_time_compare(self.digest, digest_token(token))
        return token if is_own else ""

    def select_messages(self) -> list[MessageQuerySet]:
        """Return the messages that it shows, one query for each span; deleted ones are gone."""
        messages = Message.objects.filter(session=self.session_id)
        if not self.with_tools:
            messages = messages.exclude(role=Message.Role.TOOL)
        return [messages.filter(seq__range=span) for span in self.spans]


def digest_token(token: str) -> str:
    """Return what is stored of the secret part of a link."""
    return hashlib.sha256(token.encode()).hexdigest()
