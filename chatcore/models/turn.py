"""Turns: a user message and everything up to the next one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.base.databases.fields import RowIdField
from chatcore.base.row_ids import make_row_id
from chatcore.models.owned_row import OwnedQuerySet, OwnedRow
from chatcore.models.session import Session

if TYPE_CHECKING:
    from chatcore.models.message import Message


@dataclass
class Exchange:
    """A question and its only answer, as this process has stored them.

    The reply is built from these without another query. `turn` is the object
    that the task works on. `answer` is None until the turn has ended with it, and for ever if the
    turn has more messages or ends otherwise.
    """

    turn: "Turn"
    question: "Message"
    answer: "Message | None" = None


class TurnQuerySet(OwnedQuerySet["Turn"]):
    """Queries of turns."""

    def lock(self) -> int:
        """Lock the rows of these turns, inside a transaction, and return how many there are.

        Deletions need it: turns are locked before their session (SessionQuerySet.lock says why),
        and by primary key, so that two deletions cannot wait for each other.
        """
        return len(self.select_for_update().order_by("pk").values_list("pk"))


class Turn(OwnedRow):
    """A user message and everything up to the next one, while it is generated and afterwards.

    The process that generates it renews `lease_until`. A running turn whose lease has ended belongs
    to a dead process; another process closes it. On the same machine, `process` shows it at once.
    """

    class Status(models.TextChoices):
        RUNNING = "running"
        WAITING = "waiting"  # for the results of tools that the client runs
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"
        INTERRUPTED = "interrupted"

    is_repeat = False  # True of the object that a repeated Idempotency-Key is answered with
    # Of the object that a turn began with, where one answer may be all that follows its question.
    exchange: "Exchange | None" = None

    # While a turn has one of these, no other turn of its session begins.
    OPEN_STATUSES = (Status.RUNNING, Status.WAITING)

    id = RowIdField(primary_key=True, default=make_row_id, editable=False)
    # Without an index of its own: that of (session, idempotency_key) begins with it.
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="turns", db_index=False
    )
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.RUNNING)
    lease_until = models.DateTimeField()
    process = models.UUIDField(
        null=True,
        blank=True,
        editable=False,
        help_text="The process that answers it, while it does; null: not known.",
    )
    cancel_requested = models.BooleanField(default=False)
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)
    payload_hash = models.CharField(max_length=64, blank=True)
    first_event_seq = models.PositiveBigIntegerField(default=0)
    notices = models.JSONField(default=list)
    tools = models.JSONField(
        default=list,
        help_text="Tools that the client runs itself: [{name, description, parameters}].",
    )
    max_tool_calls = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="How many tools its answers may call in all. Null: any number.",
    )
    has_servers = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether its request brought MCP servers along, which `mcp_servers` has.",
    )
    recalled = models.JSONField(
        null=True,
        blank=True,
        help_text=(
            "What it brings back from before the boundary. Null: it has not been looked for."
        ),
    )
    clearing = models.JSONField(
        null=True,
        blank=True,
        help_text=(
            "What its client wants left out of its requests, and what was left out of the newest. "
            "Null: nothing."
        ),
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
        db_index=False,  # mostly null; `turns_that_replace` has the others
        related_name="+",
        help_text="The answer that this turn writes again.",
    )
    model = models.ForeignKey(
        "models_registry.AiModel",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,  # mostly null; `turns_with_a_model` has the others
        related_name="+",
        help_text="Null: the session's.",
    )
    error = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session"], condition=Q(status="running"), name="one_running_turn_a_session"
            ),
            # Over all turns, also those without a key: it is their index of sessions. With one of
            # the session alone, SQLite takes that for the open turn, and reads all turns.
            models.UniqueConstraint(
                fields=["session", "idempotency_key"], name="one_turn_an_idempotency_key"
            ),
        ]
        # `lease_until` is in no index, so that its renewals are cheap (HOT) on PostgreSQL. Running
        # turns are few, and `one_running_turn_a_session` finds them.
        indexes = [
            # Every check asks for the open turn of a session that may have many thousand turns.
            models.Index(
                fields=["session"],
                condition=Q(status__in=["running", "waiting"]),
                name="open_turns_of_a_session",
            ),
            models.Index(
                fields=["replaces"], condition=Q(replaces__isnull=False), name="turns_that_replace"
            ),
            models.Index(
                fields=["model"], condition=Q(model__isnull=False), name="turns_with_a_model"
            ),
            # The admin lists turns from the newest on, and counts those of a day.
            models.Index(fields=["-started_at"], name="turns_by_time"),
            # Nearly all turns are completed, and these few are looked for.
            models.Index(
                fields=["status", "-started_at"],
                condition=Q(status__in=["waiting", "failed", "cancelled", "interrupted"]),
                name="turns_not_completed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"

    def add_notices(self, *notices: str) -> None:
        """Store what this turn tells its person besides the answer, each sentence once."""
        new_notices = [notice for notice in notices if notice not in self.notices]
        if new_notices:
            self.notices = [*self.notices, *new_notices]
            self.save(update_fields=["notices"])

    def list_new_notices(self) -> list[str]:
        """Return the notices that the turn before this one has not told already.

        While requests are trimmed, each turn has the notice in its record, and the first one tells
        it.
        """
        if not self.notices:
            return []
        earlier_turns = Turn.objects.filter(session=self.session_id, started_at__lt=self.started_at)
        known = earlier_turns.order_by("-started_at").values_list("notices", flat=True).first()
        return [notice for notice in self.notices if notice not in (known or [])]
