"""The table of what was asked of the language model in each run, and what it answered."""

import zlib

from django.db import models
from django.utils import timezone

FAST = 1  # of zlib's levels; what is sent is mostly prose, which the others make little smaller


def pack_text(text: str | bytes) -> bytes:
    """Return a text, or its bytes in UTF-8, in the form in which it is stored."""
    content = text if isinstance(text, bytes) else text.encode(errors="replace")
    return zlib.compress(content, FAST)


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
        NO_ANSWER = "no_answer"
        NONSENSE = "nonsense"
        UNTRUE = "untrue"
        STATE_ONLY = "state_only"

    # Without a column for the session: an insert would lock its row after the run's, which is
    # against the order of locks (docs/concurrency.md).
    run = models.ForeignKey(
        "compaction.CompactionRun", on_delete=models.CASCADE, related_name="calls", db_index=False
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
        app_label = "compaction"
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
