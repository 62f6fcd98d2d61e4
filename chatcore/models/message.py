"""Messages: the append-only history of a session."""

import logging
from collections.abc import Collection, Iterable
from typing import Any, Self

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.module_loading import import_string

from chatcore.base.token_estimate import estimate_tokens
from chatcore.base.truncation import (
    TOOL_RESULT_MAX_CHARS,
    clean_json,
    clean_text,
    cut_tool_result,
    strip_kept_note,
    to_text,
)
from chatcore.models.owned_row import OwnedQuerySet, OwnedRow
from chatcore.models.session import Session
from chatcore.models.turn import Turn

logger = logging.getLogger(__name__)

# Lengths in characters. Models have been seen to write nonsense of any length for both.
MAX_CALL_ID = 255
MAX_TOOL_NAME = 128

# The columns that the save hook derives from others: they are stored with these.
DERIVED_COLUMNS = {
    "content": ("original_chars", "tool_result_limit", "token_estimate"),
    "tool_calls": ("token_estimate",),
    "role": ("content", "original_chars", "tool_result_limit", "token_estimate"),
    "tool_result_limit": ("content", "original_chars", "token_estimate"),
}

# The columns of a message that a chat message of a request is built from.
CHAT_COLUMNS = (
    "seq",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "is_error",
)


class MessageQuerySet(OwnedQuerySet["Message"]):
    """Queries of messages. Everything that stores messages passes through the save hook."""

    def update(self, **columns: object) -> int:
        """Update columns. Raises ValueError for the text of a tool result, as `bulk_update()` does.

        Here nobody could cut it: each row has a limit of its own.
        """
        if "content" in columns and self.filter(role=Message.Role.TOOL).exists():
            raise ValueError("The text of a tool result is stored by save(), which cuts it.")
        return super().update(**columns)

    def bulk_create(self, objs: Iterable["Message"], *args: Any, **kwargs: Any) -> list["Message"]:
        """Insert messages, each through the same hook as `save()`."""
        rows = list(objs)
        for row in rows:
            row.prepare_to_store()
        return super().bulk_create(rows, *args, **kwargs)

    def bulk_update(
        self, objs: Iterable["Message"], fields: Iterable[str], *args: Any, **kwargs: Any
    ) -> int:
        """Update columns of messages, each through the same hook as `save()`."""
        rows = list(objs)
        for row in rows:
            row.prepare_to_store()
        return super().bulk_update(rows, _add_derived_columns(fields), *args, **kwargs)

    def filter_before_question(self) -> "MessageQuerySet":
        """Select those before the first question among them."""
        questions = self.filter(role=Message.Role.USER).order_by("seq")
        seq = questions.values_list("seq", flat=True).first()
        return self if seq is None else self.filter(seq__lt=seq)

    def exclude_superseded(self) -> "MessageQuerySet":
        """Return the current messages, without those that an edit or another answer superseded."""
        return self.filter(branch=None)


class Message(OwnedRow):
    """A message. Its text never changes once it is complete.

    A streaming answer is stored without text; its text and status are written once, at its end.
    """

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

    class FinishReason(models.TextChoices):
        """Ends other than the first two are no whole answers."""

        STOP = "stop"
        TOOL_CALLS = "tool_calls"
        LENGTH = "length"
        REFUSAL = "refusal"
        UNKNOWN = "unknown"

    # Without an index of its own: that of (session, seq) begins with it.
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
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
        null=True, blank=True, help_text="Tokens of the whole request, with cache reads and writes."
    )
    token_count_output = models.PositiveIntegerField(null=True, blank=True)
    token_count_cache_read = models.PositiveIntegerField(null=True, blank=True)
    token_count_cache_write = models.PositiveIntegerField(null=True, blank=True)
    cost = models.DecimalField(
        max_digits=18,
        decimal_places=12,
        null=True,
        blank=True,
        help_text="What the call cost, by the prices at that time; null: unknown.",
    )
    token_estimate = models.PositiveIntegerField(
        default=0, help_text="Estimated tokens of this message alone."
    )
    original_chars = models.PositiveIntegerField(
        null=True, blank=True, help_text="Characters before it was cut; null: not cut."
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
        help_text="Groups messages that were superseded together; null: current.",
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
        db_index=False,  # few messages replace another; `messages_that_replace` has them
        related_name="replacements",
        help_text="The message that this one is another version of.",
    )
    context_version = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The context its request was built on; null when the request was trimmed.",
    )
    # Not positive: for that check the migration would read the whole table on PostgreSQL.
    left_out_count = models.IntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text=(
            "Messages that its request left out to fit; 0: it only shortened results of tools; "
            "null: the request was not trimmed."
        ),
    )
    sent_tokens = models.IntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="The estimated tokens of its request; null: unknown.",
    )
    provider_data = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text="Kept for the protocol: thinking signatures and the like.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    sent_file_chars = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text=(
            "Characters of each text file that its first request held, null for all; null: unknown."
        ),
    )

    finish_reason = models.CharField(
        max_length=16,
        choices=FinishReason.choices,
        blank=True,
        default="",
        db_default="",  # for processes of the version before
        editable=False,
        help_text="Why the model ended its answer; empty: not known, or not ended.",
    )
    finish_detail = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The stop sequence, or the provider's word for an end before the answer's.",
    )

    # The stored text, which `original_chars` belongs to; None for a new message.
    loaded_text: str | None = None

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["session_id", "seq"]
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="one_message_a_seq")]
        indexes = [
            models.Index(
                fields=["session", "seq"], condition=Q(pinned=True), name="pinned_messages"
            ),
            models.Index(
                fields=["replaces"],
                condition=Q(replaces__isnull=False),
                name="messages_that_replace",
            ),
            # Those that a process which died has left, too.
            models.Index(
                fields=["turn"], condition=Q(status="streaming"), name="streaming_messages"
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

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any
    ) -> Self:
        """Load a message, and remember which text its `original_chars` belongs to."""
        message = super().from_db(db, field_names, values, **options)
        message.loaded_text = message.__dict__.get("content")
        return message

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the message after `prepare_to_store()`, with all columns that this derives."""
        self.prepare_to_store()
        if kwargs.get("update_fields") is not None:
            kwargs["update_fields"] = _add_derived_columns(kwargs["update_fields"])
        super().save(*args, **kwargs)

    @property
    def context_trimmed(self) -> bool:
        """True of an answer whose request was trimmed to fit. It stays true after a summary."""
        return self.left_out_count is not None

    @property
    def is_cut(self) -> bool:
        """True if the answer ended, but not where the model would have ended it."""
        return self.finish_reason not in ("", "stop", "tool_calls")

    def prepare_to_store(self) -> None:
        """Remove what cannot be stored, and cut a tool result to its limit.

        This is the save hook. It never raises, and applying it twice changes nothing more.
        """
        self.content = clean_text(to_text(self.content))
        self.reasoning = clean_text(to_text(self.reasoning))
        self.finish_detail = clean_text(to_text(self.finish_detail))
        self.provider_data = clean_json(self.provider_data or {})
        self.tool_calls = _clean_calls(self.tool_calls)
        self.tool_call_id = clean_text(to_text(self.tool_call_id))[:MAX_CALL_ID]
        self.tool_name = clean_text(to_text(self.tool_name))[:MAX_TOOL_NAME]
        if self.role == self.Role.TOOL:
            self._cut_result()
        call_chars = sum(len(call["name"]) + len(call["arguments"]) for call in self.tool_calls)
        self.token_estimate = estimate_tokens(len(self.content) + call_chars)

    def _cut_result(self) -> None:
        if self.loaded_text is not None and self.content != self.loaded_text:
            self.original_chars = None  # it is that of another text
        limit = self.tool_result_limit or TOOL_RESULT_MAX_CHARS
        if limit > TOOL_RESULT_MAX_CHARS and not self._is_as_its_policy_cuts():
            limit, self.tool_result_limit = TOOL_RESULT_MAX_CHARS, None
        self.content, original_chars = cut_tool_result(self.content, limit)
        # None means that nothing was cut now; an earlier cut may have stored the number.
        if original_chars is not None:
            self.original_chars = original_chars
        if self.loaded_text is not None:
            self.loaded_text = self.content

    def _is_as_its_policy_cuts(self) -> bool:
        """Return True if the policy of the session would store this very text.

        Only a policy allows more than the default, in its own unit. Who stores a row cannot.
        """
        if len(self.content) <= TOOL_RESULT_MAX_CHARS:
            return True
        try:
            # By its path, because models stand below the package that has compactors.
            compactor = import_string("chatcore.context.compactor.get_compactor")()
            policy = compactor.choose_policy(*self.session.policy_names)
            text = strip_kept_note(self.content)
            return bool(policy.truncate_output(text).content == text)
        except Exception:
            logger.exception("the policy of session %s was not found", self.session_id)
            return False


def _add_derived_columns(names: Iterable[str]) -> list[str]:
    """Return the names of columns with those that the save hook derives from them."""
    columns = list(names)
    derived = [name for column in columns for name in DERIVED_COLUMNS.get(column, ())]
    return list(dict.fromkeys([*columns, *derived]))


def _clean_calls(calls: object) -> list[dict[str, Any]]:
    """Return tool calls with an id, a name and arguments that are texts; the rest is kept."""
    items = clean_json(calls or [])
    cleaned_calls = []
    for item in items if isinstance(items, list) else [items]:
        call = item if isinstance(item, dict) else {"arguments": item}
        texts = {name: to_text(call.get(name)) for name in ("id", "name", "arguments")}
        cleaned_calls.append({**call, **texts, "id": texts["id"][:MAX_CALL_ID]})
    return cleaned_calls
