"""Webhooks, and the deliveries that wait to be sent to them."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.base.rare_rows import RareRow, RareRowQuerySet, RareRows


class Webhook(RareRow):
    """A URL of the owner that receives events, as the specification Standard Webhooks describes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks"
    )
    url = models.URLField(max_length=2000)
    secret = models.TextField(help_text="Encrypted; signs what is sent.")
    events = models.JSONField(default=list, help_text="Names of the events it wants; empty: all.")
    is_active = models.BooleanField(default=True)
    paused_until = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="The address has just failed: no event is sent to it for the first time before.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = RareRowQuerySet["Webhook"].as_manager()
    secret_columns = ("secret",)

    class Meta:
        db_table = "chatcore_webhook"
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.url


ACTIVE_WEBHOOKS = RareRows("chatcore_webhook", "is_active")


class WebhookDelivery(models.Model):
    """An event to send to a webhook, stored until it is delivered or given up (an outbox)."""

    class Status(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=32)
    payload = models.JSONField()
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    response_status = models.PositiveIntegerField(null=True, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "chatcore_webhookdelivery"
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "webhook deliveries"
        indexes = [
            # Two indexes, because a paused webhook may have many first attempts that wait, which
            # must not be read to find the others.
            models.Index(
                fields=["webhook", "next_attempt_at"],
                condition=Q(status="pending", attempts=0),
                name="first_attempts",
            ),
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(status="pending", attempts__gt=0),
                name="further_attempts",
            ),
            models.Index(fields=["-created_at", "-id"], name="deliveries_by_time"),
            # The filters of the admin's list that find few of many.
            models.Index(
                fields=["-created_at", "-id"],
                condition=Q(status="failed"),
                name="failed_deliveries",
            ),
            models.Index(
                fields=["-created_at", "-id"],
                condition=Q(status="pending"),
                name="pending_deliveries",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.status}"
