"""Turns: a user message and everything up to the next one."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.models.session import Session


class Turn(models.Model):
    """A user message and everything up to the next one, while it is generated and afterwards.

    The process that generates it renews `lease_until`. A running turn whose lease has ended belongs
    to a dead process; another process closes it.
    """

    class Status(models.TextChoices):
        RUNNING = "running"
        WAITING = "waiting"  # for the results of tools that the client runs
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"
        INTERRUPTED = "interrupted"

    # While a turn has one of these, no other turn of its session begins.
    OPEN_STATUSES = (Status.RUNNING, Status.WAITING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.RUNNING)
    lease_until = models.DateTimeField()
    cancel_requested = models.BooleanField(default=False)
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)
    payload_hash = models.CharField(max_length=64, blank=True)
    first_event_seq = models.PositiveBigIntegerField(default=0)
    notices = models.JSONField(default=list)
    tools = models.JSONField(
        default=list,
        help_text="Tools that the client runs itself: [{name, description, parameters}].",
    )
    question = models.ForeignKey(
        "Message",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The user's message that it answers.",
    )
    replaces = models.ForeignKey(
        "Message",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The answer that this turn writes again.",
    )
    model = models.ForeignKey(
        "models_registry.AiModel",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Null: the session's.",
    )
    error = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session"], condition=Q(status="running"), name="one_running_turn_a_session"
            ),
            models.UniqueConstraint(
                fields=["session", "idempotency_key"], name="one_turn_an_idempotency_key"
            ),
        ]
        indexes = [
            models.Index(
                fields=["lease_until"], condition=Q(status="running"), name="turns_to_recover"
            )
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"
