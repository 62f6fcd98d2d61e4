"""The tables of compaction. Django finds all of them through this module, and only so."""

import uuid
import zlib
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Case, OuterRef, Q, Subquery, Value, When
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.fields import RowIdField
from chatcore.base.row_ids import make_row_id
from chatcore.models import ContextRevision
from compaction.core.knobs import PolicyError
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS

OPEN_STATUSES = ("queued", "running")
MAX_FRUITLESS_RUNS = 2
MAX_SEQ = 2**31 - 1
FORGOTTEN_TEXT = "[forgotten: a message it was written from was deleted]"


def select_summaries(
    version: OuterRef | int, session: OuterRef | uuid.UUID
) -> models.QuerySet[ContextRevision, str]:
    """Return the summary of one revision, or that it is forgotten, as a query of one value."""
    is_forgotten = When(stale=True, summary="", then=Value(FORGOTTEN_TEXT))
    summary = Case(is_forgotten, default="summary", output_field=models.TextField())
    revisions = ContextRevision.objects.order_by().filter(session=session, version=version)
    return revisions.annotate(shown_summary=summary).values_list("shown_summary", flat=True)


class RunQuerySet(models.QuerySet["CompactionRun"]):
    """Queries of runs that several modules need."""

    def with_summaries(self) -> "RunQuerySet":
        """Load the summaries of the runs in the same statement."""
        before = select_summaries(OuterRef("version_before"), OuterRef("session"))
        after = select_summaries(OuterRef("version_after"), OuterRef("session"))
        return self.annotate(
            loaded_summary_before=Subquery(before[:1]), loaded_summary_after=Subquery(after[:1])
        )


ZLIB_LEVEL = 1  # what is sent is mostly prose, which the others make little smaller


class CompactionRun(models.Model):
    """One compaction of a session: first the job with its lease, afterwards the record of it.

    The row is the truth. The queue only wakes workers (runs/leases.py says which run is next).
    """

    class Trigger(models.TextChoices):
        AFTER_RESPONSE = "after_response", _("after an answer")
        BEFORE_REQUEST = "before_request", _("before an answer")
        ON_MODEL_CHANGE = "on_model_change", _("on a change of the model")
        ON_OVERFLOW = "on_overflow", _("after a refusal as too long")
        MANUAL = "manual", _("by hand")
        BY_CLIENT = "by_client", _("a program brought its own summary")

    class Status(models.TextChoices):
        QUEUED = "queued", _("waits")
        RUNNING = "running", _("works")
        APPLIED = "applied", _("done")
        SKIPPED = "skipped", _("nothing to do")
        FAILED = "failed", _("failed")
        FELL_BACK = "fell_back", _("failed, oldest messages left out")
        REWOUND = "rewound", _("undone")

    FORCED_TRIGGERS = (Trigger.MANUAL, Trigger.ON_OVERFLOW)

    id = RowIdField(primary_key=True, default=make_row_id, editable=False)
    # Runs are deleted with their session, because summaries repeat what was written in it.
    session = models.ForeignKey(
        "chatcore.Session",
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    basis = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="A fingerprint of the context and the options; one that failed fails again.",
    )
    trigger = models.CharField(max_length=16, choices=Trigger.choices)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED)
    policy = models.CharField(max_length=64)
    provider = models.CharField(max_length=64, db_default="", default="", blank=True)
    places = models.IntegerField(db_default=2, default=2, help_text="flow.workers")
    # Typed as never null, because it is only read of open runs.
    policy_snapshot: "models.JSONField[Any, Any]" = models.JSONField(
        default=dict, null=True, blank=True, help_text="Null: not kept any more."
    )
    instructions = models.TextField(blank=True)
    up_to_seq = models.PositiveIntegerField(null=True, blank=True)
    # The version of the context to begin from; what came after it is replaced on success.
    from_version = models.PositiveIntegerField(null=True, blank=True)
    only_stages = models.JSONField(default=list, help_text="Only these stages; empty: all.")

    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(
        default=0, help_text="Number of claims; it is the fencing token of the newest one."
    )
    deaths = models.PositiveIntegerField(
        default=0, help_text="Number of claims that ended with the death of their worker."
    )
    announced = models.BooleanField(
        default=False, help_text="Its start was announced, so its end must be announced too."
    )
    enqueued_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was last sent to the queue."
    )

    stages_used = models.JSONField(default=list)
    tokens_before = models.PositiveIntegerField(null=True, blank=True)
    tokens_after = models.PositiveIntegerField(null=True, blank=True)
    messages_compacted = models.PositiveIntegerField(default=0)
    boundary_before = models.PositiveIntegerField(null=True, blank=True)
    boundary_after = models.PositiveIntegerField(null=True, blank=True)
    # The context before and after it; their revisions have the summaries.
    version_before = models.PositiveIntegerField(null=True, blank=True)
    version_after = models.PositiveIntegerField(null=True, blank=True)
    model = models.CharField(max_length=200, blank=True)
    summary_model = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="The model that somebody chose for this run; empty: the one of all runs.",
    )
    provider_calls = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(
        default=0, help_text="Of the input tokens, those that were read from a provider's cache."
    )
    expected_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="How long its summary should take, by the model's speed."
    )
    edits = models.JSONField(default=list)
    targets = models.JSONField(
        default=list,
        help_text="[{seq, role, tool, method, chars_before, chars_after}], "
        "one for each message changed.",
    )
    state_after = models.JSONField(
        default=dict,
        help_text="What apps recorded of what they keep of the session, after this run.",
    )
    verification = models.JSONField(
        default=dict,
        help_text="{checks, findings: [{check, text, action}]}; empty where nothing was checked.",
    )
    error = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    keeps_words = models.BooleanField(
        default=True,
        db_default=True,
        help_text="False: a message was deleted while it ran, so its calls are stored without "
        "their texts.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["session"],
                condition=Q(status__in=OPEN_STATUSES),
                name="one_open_run_a_session",
            )
        ]
        indexes = [
            models.Index(fields=["session", "-created_at"], name="runs_of_a_session"),
            # The admin lists runs from the newest on, and counts those of a day.
            models.Index(fields=["-created_at", "-id"], name="runs_by_time"),
            models.Index(fields=["status", "-created_at", "-id"], name="runs_by_status"),
            models.Index(fields=["trigger", "-created_at", "-id"], name="runs_by_trigger"),
            models.Index(fields=["policy", "-created_at", "-id"], name="runs_by_policy"),
            models.Index(
                fields=["status", "created_at"],
                condition=Q(status__in=OPEN_STATUSES),
                name="open_runs",
            ),
            models.Index(
                fields=["owner", "policy", "provider", "places", "created_at", "id"],
                condition=Q(status="queued"),
                name="runs_in_line",
            ),
            # When an owner was last served.
            models.Index(
                fields=["owner", "-started_at"],
                condition=Q(started_at__isnull=False),
                name="runs_served",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_trigger_display()}: {self.get_status_display()}"

    @property
    def is_forced(self) -> bool:
        """Return True if it compacts any context: requested by hand, or after a refusal."""
        return self.trigger in self.FORCED_TRIGGERS

    @property
    def summary_before(self) -> str | None:
        """Return the summary that the run found; None if there was none."""
        if hasattr(self, "loaded_summary_before"):
            return self.loaded_summary_before
        return self._load_summary(self.version_before)

    @property
    def summary_after(self) -> str | None:
        """Return the summary that the run left; None if it left none, or changed nothing."""
        if hasattr(self, "loaded_summary_after"):
            return self.loaded_summary_after
        return self._load_summary(self.version_after)

    def _load_summary(self, version: int | None) -> str | None:
        return select_summaries(version, self.session_id).first() if version else None

    @property
    def tokens_saved(self) -> int | None:
        """Return the tokens of context that the run saved; None until both sizes are known."""
        if self.tokens_before is None or self.tokens_after is None:
            return None
        return self.tokens_before - self.tokens_after

    @property
    def duration_ms(self) -> int | None:
        """Return the milliseconds from the first claim to the end; None before the end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return int((self.finished_at - self.started_at).total_seconds() * 1000)


class CompactionPolicy(models.Model):
    """A policy that an operator made: a preset with overrides, chosen by its name."""

    name = models.SlugField(max_length=64, unique=True)
    base = models.CharField(max_length=64, default="oneclaw")
    overrides = models.JSONField(default=dict, blank=True)
    is_active = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Off: nobody can choose it, and whatever names it goes on with the next policy.",
    )

    class Meta:
        verbose_name_plural = "compaction policies"

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse what the engine would refuse. Raises ValidationError, which names the field."""
        if self.name in PRESETS:
            raise ValidationError({"name": "A preset has this name."})
        if self.base not in PRESETS:
            raise ValidationError(
                {"base": f"There is no preset named {self.base!r}; there are {', '.join(PRESETS)}."}
            )
        try:
            Policy.parse(self.overrides, PRESETS[self.base])
        except PolicyError as error:
            raise ValidationError({"overrides": str(error)}) from None


class SessionState(models.Model):
    """What a session's past runs mean for its next automatic one.

    A failure delays it, and runs that gain almost nothing stop it, because each costs a model call.
    """

    session = models.OneToOneField(
        "chatcore.Session",
        on_delete=models.CASCADE,
        related_name="+",
        primary_key=True,
    )
    failures = models.PositiveIntegerField(default=0, help_text="Failed runs in a row.")
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="No automatic run until then."
    )
    fruitless = models.PositiveIntegerField(
        default=0, help_text="Runs in a row that gained almost nothing."
    )
    trimming = models.BooleanField(
        default=False, help_text="The last run failed: requests over the threshold are trimmed."
    )
    learned_for = models.CharField(
        max_length=255,
        blank=True,
        help_text="The model and its registered window, which the learned numbers belong to.",
    )
    learned_window = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens; the window that a refusal named."
    )
    learned_scale = models.FloatField(
        default=1, help_text="Real tokens for each estimated token, learned from a refusal."
    )
    ledger_seq = models.PositiveIntegerField(
        default=0, help_text="The newest message that was read for the ledger."
    )

    class Meta:
        # Most sessions are none of these; the admin lists those that are.
        indexes = [
            models.Index(fields=[field], condition=condition, name=f"sessions_that_{verb}")
            for verb, field, condition in (
                ("stopped", "session", Q(fruitless__gte=MAX_FRUITLESS_RUNS)),
                ("wait", "not_before", Q(not_before__isnull=False)),
                ("trim", "session", Q(trimming=True)),
            )
        ]

    def __str__(self) -> str:
        return str(self.session_id)

    @property
    def is_stopped(self) -> bool:
        """Return True if automatic runs have stopped until one is requested by hand."""
        return self.fruitless >= MAX_FRUITLESS_RUNS

    @property
    def is_waiting(self) -> bool:
        """Return True while a failure delays the next automatic run."""
        return self.not_before is not None and self.not_before > read_clock()


def pack_text(text: str | bytes) -> bytes:
    """Return a text, or its bytes in UTF-8, in the form in which it is stored."""
    content = text if isinstance(text, bytes) else text.encode(errors="replace")
    return zlib.compress(content, ZLIB_LEVEL)


def unpack_text(content: bytes | memoryview | None) -> str | None:
    """Return a stored text; None where there is none."""
    return None if content is None else zlib.decompress(content).decode(errors="replace")


class ModelCall(models.Model):
    """One call of a language model for a run.

    A run's calls make a tree: of its levels, of their parts, and of the attempts at each part.
    """

    class Kind(models.TextChoices):
        MESSAGES = "messages"
        LEAF = "leaf"
        MERGE = "merge"
        ROLLUP = "rollup"
        MEMORY = "memory"

    class Refusal(models.TextChoices):
        NO_ANSWER = "no_answer", _("no answer")
        NONSENSE = "nonsense", _("not a summary")
        UNTRUE = "untrue", _("against what was said")
        STATE_ONLY = "state_only", _("only a state, no summary")

    # Without a column for the session: an insert would lock its row after the run's, which is
    # against the order of locks (docs/concurrency.md).
    run = models.ForeignKey(
        CompactionRun, on_delete=models.CASCADE, related_name="calls", db_index=False
    )
    number = models.PositiveIntegerField(help_text="Of the run's calls, from 1.")
    claim = models.PositiveIntegerField(help_text="The number of the run's claim that made it.")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    level = models.PositiveIntegerField(
        default=0, help_text="0: it read messages. A merge read the answers of the level below."
    )
    part = models.PositiveIntegerField(help_text="Of the parts of this claim, from 1.")
    attempt = models.PositiveIntegerField(help_text="At this part, from 1.")
    model = models.CharField(max_length=200, blank=True)
    request = models.BinaryField(
        null=True, help_text="The body as it was sent, by zlib; null: not kept, or forgotten."
    )
    answer = models.BinaryField(
        null=True, help_text="The text as the model wrote it, by zlib; null: not kept or forgotten."
    )
    finish = models.CharField(max_length=16, blank=True, help_text="How the answer ended.")
    refusal = models.CharField(
        max_length=16, blank=True, choices=Refusal.choices, help_text="Empty: the answer was used."
    )
    reason = models.TextField(blank=True, help_text="Why the answer was not used.")
    input_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    seconds = models.FloatField(default=0, help_text="From the request to the end of the answer.")
    first_word_seconds = models.FloatField(default=0)
    ended_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="one_call_a_number"),
        ]

    def __str__(self) -> str:
        return f"call {self.number} of run {self.run_id}"

    @property
    def request_text(self) -> str | None:
        """Return the request's body; None where it is not stored."""
        return unpack_text(self.request)

    @property
    def answer_text(self) -> str | None:
        """Return the answer as the model wrote it; None where it is not stored."""
        return unpack_text(self.answer)


class ModelRatio(models.Model):
    """What calls of a model taught: real tokens for each estimated one, its window, its speed."""

    model = models.CharField(max_length=255, unique=True, help_text="provider/name")
    ratio = models.FloatField(default=1)
    samples = models.PositiveIntegerField(default=0)
    window = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens; the window that a refusal named. Null: none did."
    )
    window_learned_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When it was learned, or last doubted by sending a longer request.",
    )
    registered = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The registry's window at that time. If it has changed since, "
        "the learned window is void.",
    )
    prompt_speed = models.FloatField(
        null=True, blank=True, help_text="Tokens a second that it reads; null: not measured."
    )
    answer_speed = models.FloatField(
        null=True, blank=True, help_text="Tokens a second that it writes; null: not measured."
    )

    def __str__(self) -> str:
        return self.model


def find_open_run(session_id: uuid.UUID) -> CompactionRun | None:
    """Return the session's queued or running run, if there is one."""
    return CompactionRun.objects.filter(session_id=session_id, status__in=OPEN_STATUSES).first()
