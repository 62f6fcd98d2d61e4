"""Sessions: the conversations, and what the model sees of each of them now."""

from contextvars import ContextVar
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import connection, models
from django.db.models import Q
from django.db.transaction import TransactionManagementError
from django.utils import timezone

from chatcore.base.databases.compiled_queries import CompiledQuery
from chatcore.base.databases.fields import RowIdField
from chatcore.base.row_ids import make_row_id

# Set while a page of the admin is made for somebody who may not see what people wrote. Django names
# rows in messages, labels and links of its own, so the name itself must be without words.
are_titles_hidden: ContextVar[bool] = ContextVar("are_titles_hidden", default=False)

MIN_THRESHOLD_TOKENS = 100  # a number between 1 and this is a mistake
MAX_THRESHOLD_TOKENS = 100_000_000


class SessionQuerySet(models.QuerySet["Session"]):
    """Queries of sessions that several packages need."""

    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> "SessionQuerySet":
        """Return this user's sessions; other sessions do not exist for them."""
        return self.filter(owner=user)

    def list_for(
        self,
        user: AbstractBaseUser | AnonymousUser,
        *,
        archived: bool | None = None,
        parent: UUID | None = None,
    ) -> "SessionQuerySet":
        """Return a user's sessions as lists show them, the one used last first.

        Temporary ones are left out. `archived` selects those in the archive or those outside of
        it; None selects both. Sessions of subagents are listed only with `parent`, their session's.
        """
        sessions = self.owned_by(user).filter(temporary=False, parent=parent)
        sessions = sessions.order_by("-updated_at", "-id")
        return sessions if archived is None else sessions.filter(archived=archived)

    def lock(self, pk: UUID) -> "Session":
        """Return the session with its row locked until the transaction ends. Raises DoesNotExist.

        This lock serializes everything that changes a conversation: message numbers, event numbers,
        which messages are current, and the context. All packages take it here.

        Row locks are taken in one order: turn, session, compaction run, structured state. A writer
        may skip a lock, but it never goes back to an earlier one. The turn comes first because
        every write for a running turn begins with the lock of its row, and only then needs a
        number from the session. Whoever holds the session and waits for a turn would therefore
        wait for a writer that waits for the session (docs/concurrency.md, Lock order).
        """
        # Only the session's own row is locked: a lock on the joined model would stop every
        # conversation that uses it.
        if not connection.in_atomic_block:
            raise TransactionManagementError("A session is locked inside a transaction.")
        for session in _LOCKED.fetch(pk):
            return session
        raise self.model.DoesNotExist(f"Session {pk} is deleted.")


_LOCKED = CompiledQuery(
    lambda pk: (
        Session.objects.select_for_update(of=("self",))
        .select_related("model__provider")
        .filter(pk=pk)
    )
)


class VisibleSessionManager(models.Manager["Session"]):
    """The sessions that exist for everyone: complete, and not deleted."""

    def get_queryset(self) -> SessionQuerySet:
        return SessionQuerySet(self.model, using=self._db).filter(discard_at=None)


class Session(models.Model):
    """A conversation: its settings, its counters, and what the model sees of it now.

    The columns from `compacted_summary` to `last_event_seq` are derived from other tables;
    chatcore/sessions/verification.py says how.
    """

    id = RowIdField(primary_key=True, default=make_row_id, editable=False)
    # Without an index of its own: that of (owner, updated_at, id) begins with it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="chat_sessions",
        db_index=False,
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
    # Without an index of its own, as `owner`.
    project = models.ForeignKey(
        "chatcore.Project",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="sessions",
        db_index=False,
    )
    overhead_since = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When what is sent besides its messages last changed: project, prompt, tools.",
    )
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
    # Above 1 it is a number of tokens.
    compact_threshold = models.FloatField(
        null=True, blank=True, help_text="In place of the policy's own trigger.threshold."
    )
    external_id = models.CharField(
        max_length=255, null=True, blank=True, help_text="What an OpenAI client calls this session."
    )
    metadata = models.JSONField(
        default=dict, blank=True, help_text="What a client of the conversations API notes here."
    )
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    temporary = models.BooleanField(
        default=False,
        db_default=False,
        help_text="In no list and no search, and deleted some hours after its last use.",
    )

    # Its index is one of those below.
    forked_from = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="forks",
        db_index=False,
        help_text="The session that it is a fork of, of the same owner, who may have deleted it.",
    )
    forked_from_seq = models.PositiveIntegerField(
        null=True, blank=True, editable=False, help_text="The message there that was forked from."
    )

    # Its index is one of those below.
    parent = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="subagents",
        db_index=False,
        help_text="Of a subagent's session: that of the conversation that started the subagent.",
    )

    title_source = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="Of a title that a model wrote: its digest, and the seqs of the messages it is"
        " made of.",
    )
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

    discard_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text=(
            "Null: a session as any other. Otherwise nobody sees it: it is being imported, forked "
            "or deleted, and its rows may be deleted from this time on."
        ),
    )
    expired_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When retention hid the session. Staff may bring it back until `discard_at`.",
    )

    # To all code a hidden session does not exist. Only what writes or deletes one says otherwise.
    objects = VisibleSessionManager.from_queryset(SessionQuerySet)()
    all_objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        permissions = [("view_content", "Can see what people and models wrote")]
        constraints = [
            # Few sessions have one, so the index holds only these.
            models.UniqueConstraint(
                fields=["owner", "external_id"],
                condition=Q(external_id__isnull=False),
                name="one_session_of_an_external_id",
            )
        ]
        indexes = [
            models.Index(fields=["owner", "-updated_at", "-id"], name="sessions_of_an_owner"),
            # The admin lists everybody's sessions, and those that do not compact by themselves.
            models.Index(fields=["-updated_at", "-id"], name="sessions_by_time"),
            models.Index(
                fields=["-updated_at", "-id"],
                condition=Q(auto_compact=False),
                name="sessions_not_compacting",
            ),
            models.Index(
                fields=["discard_at"],
                condition=Q(discard_at__isnull=False),
                name="sessions_to_discard",
            ),
            models.Index(
                fields=["updated_at"], condition=Q(temporary=True), name="temporary_sessions"
            ),
            models.Index(
                fields=["project", "-updated_at", "-id"],
                condition=Q(project__isnull=False),
                name="sessions_of_a_project",
            ),
            models.Index(
                fields=["forked_from"],
                condition=Q(forked_from__isnull=False),
                name="forks_of_a_session",
            ),
            models.Index(
                fields=["parent"],
                condition=Q(parent__isnull=False),
                name="subagents_of_a_session",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id) if are_titles_hidden.get() else self.title or str(self.id)

    @property
    def policy_names(self) -> tuple[str, str]:
        """The policies of the session and of its model; empty where none is named."""
        return (self.policy, self.model.policy if self.model else "")
