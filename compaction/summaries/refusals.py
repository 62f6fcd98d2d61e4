"""Why an answer of a summary model is not used, and how often that happens."""

import logging

from django.db import DatabaseError

from chatcore.base.metrics import counts
from compaction.core.stages.base import SummaryFailed
from compaction.models import CompactionRun, ModelCall

logger = logging.getLogger(__name__)


class SummaryMissing(SummaryFailed):
    """An answer that holds the delta of the structured state and no summary."""

    def __init__(self, delta_block: str) -> None:
        super().__init__("The model wrote only how the state changes, and no summary.")
        self.delta_block = delta_block


class NoAnswer(SummaryFailed):
    """The model did not answer at all."""


class UntrueSummary(SummaryFailed):
    """A summary says what no message supports, and could not be repaired."""


REASONS: dict[type[SummaryFailed], str] = {
    NoAnswer: ModelCall.Refusal.NO_ANSWER,
    SummaryMissing: ModelCall.Refusal.STATE_ONLY,
    UntrueSummary: ModelCall.Refusal.UNTRUE,
}


def name_refusal(error: SummaryFailed) -> str:
    """Return in one word why an answer is not used."""
    return str(REASONS.get(type(error), ModelCall.Refusal.NONSENSE))


def count_refusal(error: SummaryFailed) -> None:
    """Count an answer that is not used, for those who watch an installation."""
    counts.count_refused_summary(name_refusal(error))


def store_refusal(run: CompactionRun, number: int, refusal: str, reason: str) -> None:
    """Store with a call why its answer is not used. Where that fails, the run goes on.

    The reason may quote the answer, so it is not stored if a message was deleted meanwhile.
    """
    calls = ModelCall.objects.filter(run=run, number=number)
    try:
        calls.update(refusal=refusal)
        calls.exclude(answer=None).update(reason=reason)
    except DatabaseError:
        logger.warning("why a summary was refused was not stored", exc_info=True)
