"""What is stored of a conversation. Messages are append-only; what the model sees of them is kept beside them."""

import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.sessions.truncation import (
    TOOL_RESULT_MAX_CHARS,
    clean_json,
    clean_text,
    cut_tool_result,
)

MAX_CALL_ID = (
    255  # characters, as for MAX_TOOL_NAME; models have been seen to write nonsense for both
)
MAX_TOOL_NAME = 128


class SessionQuerySet(models.QuerySet["Session"]):
    """Sessions as their owner lists them."""

    def owned_by(self, user: Any) -> "SessionQuerySet":
        """Only this user's; everything else does not exist for them."""
        return self.filter(owner=user)


class Session(models.Model):
    """One conversation, and what the model sees of it now."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="chat_sessions"
    )
    title = models.CharField(max_length=200, blank=True)
    model = models.ForeignKey(
        "models_registry.AiModel",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    system_prompt = models.TextField(blank=True)
    policy = models.CharField(
        max_length=64,
        blank=True,
        help_text="Compaction policy; empty: the model's or the project's.",
    )
    auto_compact = models.BooleanField(default=True)
    tools = models.JSONField(
        null=True, blank=True, help_text="Names of the built-in tools offered; null: all of them."
    )
    params = models.JSONField(
        default=dict, blank=True, help_text="Sent to the provider: temperature, max_tokens …"
    )
    compact_threshold = models.FloatField(
        null=True, blank=True, help_text="In place of the policy's own trigger.threshold."
    )
    external_id = models.CharField(
        max_length=255, null=True, blank=True, help_text="What an OpenAI client calls this session."
    )
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)

    compacted_summary = models.TextField(null=True, blank=True)
    compact_boundary_seq = models.PositiveIntegerField(
        null=True, blank=True, help_text="The oldest message still sent as it is."
    )
    compact_boundary_timestamp = models.DateTimeField(null=True, blank=True)
    context_version = models.PositiveIntegerField(default=0)

    message_count = models.PositiveIntegerField(default=0)
    last_seq = models.PositiveIntegerField(default=0, editable=False)
    last_event_seq = models.PositiveBigIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(
        default=timezone.now, help_text="Moves on the user's acts, not on compaction's."
    )

    objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "external_id"], name="one_session_an_external_id"
            )
        ]
        indexes = [
            models.Index(fields=["owner", "-updated_at", "-id"], name="sessions_of_an_owner")
        ]

    def __str__(self) -> str:
        return self.title or str(self.id)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """A new one sends those that were used longest ago to the archive, where CHATCORE["MAX_SESSIONS"] says how many stay."""
        is_new, max_sessions = self._state.adding, settings.CHATCORE.get("MAX_SESSIONS", 0)
        super().save(*args, **kwargs)
        if is_new and max_sessions:
            active_sessions = Session.objects.filter(
                owner_id=self.owner_id, archived=False, pinned=False
            ).exclude(pk=self.pk)
            oldest_ids = active_sessions.order_by("-updated_at", "-id").values_list(
                "pk", flat=True
            )[max_sessions - 1 :]
            Session.objects.filter(pk__in=list(oldest_ids)).update(archived=True)


class Turn(models.Model):
    """A user message and all up to the next, while it is being generated and after: the lease a dead process cannot renew."""

    class Status(models.TextChoices):
        RUNNING = "running"
        WAITING = "waiting"  # for results of tools that the client runs itself
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"
        INTERRUPTED = "interrupted"

    OPEN_STATUSES = (
        Status.RUNNING,
        Status.WAITING,
    )  # nothing else is said to the session meanwhile

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
        help_text="The user's message it answers.",
    )
    replaces = models.ForeignKey(
        "Message",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The answer of which it gives another.",
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


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages in order; every way in passes the save hook."""

    def bulk_create(self, objs: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Insert many, each through the same hook as save()."""
        rows = list(objs)
        for row in rows:
            row.prepare_to_store()
        return super().bulk_create(rows, *args, **kwargs)

    def exclude_superseded(self) -> "MessageQuerySet":
        """Without what an edit or another answer superseded."""
        return self.filter(branch=None)

    def filter_live(self, boundary_seq: int | None) -> "MessageQuerySet":
        """From the boundary on, and the pinned ones before it: what is sent as it is. Two indexed ranges."""
        return (
            self.exclude_superseded()
            .filter(Q(seq__gte=boundary_seq or 0) | Q(pinned=True))
            .order_by("seq")
        )


class Message(models.Model):
    """One message. Once complete it never changes; `status` and the words of a streaming answer are written once, at its end."""

    class Role(models.TextChoices):
        SYSTEM = "system"
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"

    class Status(models.TextChoices):
        COMPLETE = "complete"
        STREAMING = "streaming"
        INTERRUPTED = "interrupted"
        FAILED = "failed"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="messages")
    turn = models.ForeignKey(
        Turn, on_delete=models.SET_NULL, null=True, blank=True, related_name="messages"
    )
    seq = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=Role.choices)
    content = models.TextField(blank=True)
    tool_calls = models.JSONField(
        default=list,
        blank=True,
        help_text="[{id, name, arguments}]; arguments as the JSON text the model wrote.",
    )
    tool_call_id = models.CharField(max_length=MAX_CALL_ID, blank=True)
    tool_name = models.CharField(max_length=MAX_TOOL_NAME, blank=True)
    is_error = models.BooleanField(default=False)
    reasoning = models.TextField(blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.COMPLETE)
    model = models.CharField(max_length=200, blank=True, help_text="provider/name that wrote it.")
    pinned = models.BooleanField(default=False)
    token_count_input = models.PositiveIntegerField(
        null=True, blank=True, help_text="The whole request's, cache reads and writes included."
    )
    token_count_output = models.PositiveIntegerField(null=True, blank=True)
    token_count_cache_read = models.PositiveIntegerField(null=True, blank=True)
    token_count_cache_write = models.PositiveIntegerField(null=True, blank=True)
    token_estimate = models.PositiveIntegerField(
        default=0, help_text="Estimated tokens of this message alone."
    )
    original_chars = models.PositiveIntegerField(
        null=True, blank=True, help_text="Characters before the cut; null when not cut."
    )
    tool_result_limit = models.PositiveIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="Characters a tool result may have; null: the default.",
    )
    branch = models.UUIDField(
        null=True,
        blank=True,
        editable=False,
        help_text="Superseded messages carry what they were superseded by together; null: current.",
    )
    branch_after = models.PositiveIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="The seq of the message that the branch follows, 0 for none; null: current.",
    )
    replaces = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="replacements",
        help_text="Of which this is another version.",
    )
    context_version = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The context its request was built on; null when the request was trimmed.",
    )
    provider_data = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text="Kept for the protocol: thinking signatures and the like.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["session", "seq"]
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="one_message_a_seq")]
        indexes = [
            models.Index(
                fields=["session", "seq"], condition=Q(pinned=True), name="pinned_messages"
            ),
            models.Index(
                fields=["session"],
                condition=Q(replaces__isnull=False),
                name="messages_with_versions",
            ),
            models.Index(
                fields=["session", "branch"],
                condition=Q(branch__isnull=False),
                name="superseded_messages",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store through the hook: clean text, cut tool results."""
        self.prepare_to_store()
        super().save(*args, **kwargs)

    def prepare_to_store(self) -> None:
        """The save hook: remove what cannot be stored; cut a tool result to its limit. Never raises, changes nothing twice."""
        self.content = clean_text(self.content or "")
        self.reasoning = clean_text(self.reasoning or "")
        self.provider_data = clean_json(self.provider_data)
        self.tool_calls = [
            {**call, "id": call["id"][:MAX_CALL_ID]} for call in clean_json(self.tool_calls)
        ]
        self.tool_call_id, self.tool_name = (
            clean_text(self.tool_call_id)[:MAX_CALL_ID],
            clean_text(self.tool_name)[:MAX_TOOL_NAME],
        )
        if self.role == self.Role.TOOL:
            self.content, original_chars = cut_tool_result(
                self.content, self.tool_result_limit or TOOL_RESULT_MAX_CHARS
            )
            self.original_chars = (
                original_chars if original_chars is not None else self.original_chars
            )
        text_chars = len(self.content) + sum(
            len(call["name"]) + len(call["arguments"]) for call in self.tool_calls
        )
        self.token_estimate = estimate_tokens(text_chars)


class Attachment(models.Model):
    """A file that came with a message; its name is a label and never reaches the file system."""

    class Kind(models.TextChoices):
        FILE = "file"
        OUTPUT = "output"  # the whole of a tool's output, where the message holds a part

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="attachments")
    message = models.ForeignKey(
        Message,
        on_delete=models.CASCADE,
        related_name="attachments",
        null=True,
        blank=True,
        help_text="Null: uploaded, not yet sent.",
    )
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.FILE)
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField(help_text="Bytes.")
    token_estimate = models.PositiveIntegerField(
        default=0, help_text="Estimated tokens of the text, or of the image."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # Last: SQLite reads a row up to the columns asked for.
    data = models.BinaryField()
    text = models.TextField(
        blank=True, help_text="What a model that cannot open the file is given."
    )

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(message=None), name="attachments_not_sent"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ContextRevision(models.Model):
    """One installed change of what the model sees. Immutable."""

    class Source(models.TextChoices):
        COMPACTION = "compaction"
        EDIT = "edit"
        REWIND = "rewind"
        RESET = "reset"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    summary = models.TextField(null=True, blank=True)
    boundary_seq = models.PositiveIntegerField(null=True, blank=True)
    boundary_timestamp = models.DateTimeField(null=True, blank=True)
    kept_seqs = models.JSONField(
        default=list, help_text="Messages before the boundary that are sent all the same."
    )
    background = models.TextField(
        blank=True,
        help_text="Reference text that is sent with the summary: structured state, memory.",
    )
    placement = models.JSONField(
        default=dict,
        help_text="Where the summary stands, and between which words (summary_block.py); empty: in the system text.",
    )
    stale = models.BooleanField(
        default=False, help_text="It covers a message that was edited, superseded or deleted since."
    )
    source = models.CharField(max_length=16, choices=Source.choices)
    restores = models.PositiveIntegerField(
        null=True, blank=True, help_text="The version a rewind went back to."
    )
    run = models.CharField(max_length=64, blank=True, help_text="The compaction run that made it.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["session", "version"]
        constraints = [
            models.UniqueConstraint(fields=["session", "version"], name="one_revision_a_version")
        ]

    def __str__(self) -> str:
        return f"version {self.version} ({self.source})"


class ContextEdit(models.Model):
    """A message shown to the model in another form, from one context version until another."""

    class Kind(models.TextChoices):
        PRUNED = "pruned"
        DEDUPLICATED = "deduplicated"
        EXCERPTED = "excerpted"
        IMAGES_STRIPPED = "images_stripped"
        HIDDEN = "hidden"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="context_edits")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="context_edits")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    replacement = models.TextField(blank=True)
    from_version = models.PositiveIntegerField()
    until_version = models.PositiveIntegerField(null=True, blank=True, help_text="Null: in force.")

    class Meta:
        indexes = [
            models.Index(fields=["session"], condition=Q(until_version=None), name="edits_in_force")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.message_id}"


class SessionEvent(models.Model):
    """One line of the session's log, which feeds every stream. `seq` is given under the session's row lock, so order is commit order."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    name = models.CharField(max_length=32)
    message = models.BigIntegerField(
        null=True, blank=True, help_text="The message a delta belongs to."
    )
    data = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["session", "seq"]
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="one_event_a_seq")]
        indexes = [
            models.Index(
                fields=["message"], condition=Q(name__endswith=".delta"), name="deltas_of_a_message"
            )
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.name}"


class Webhook(models.Model):
    """An address of the owner's that is told of finished turns and compactions (Standard Webhooks)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks"
    )
    url = models.URLField(max_length=2000)
    secret = models.TextField(help_text="Encrypted; signs what is sent.")
    events = models.JSONField(default=list, help_text="Names of the events it wants; empty: all.")
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """One thing to tell one address, kept until it was told or given up. The row is the outbox."""

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
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "webhook deliveries"
        indexes = [
            models.Index(
                fields=["next_attempt_at"], condition=Q(status="pending"), name="deliveries_due"
            )
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.status}"
